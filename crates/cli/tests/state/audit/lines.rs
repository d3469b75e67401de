//! Lines that were edited, removed, inserted, forged, swapped or cut: found at their place.

use super::{name, parsed, sealed, some, text};
use crate::harness::*;

#[test]
fn an_edited_byte() {
    let (place, file, lines) = some();
    for (index, line) in lines.iter().enumerate() {
        // The first byte of every value, and the last of the line.
        let mut places: Vec<usize> = line.match_indices("\":").map(|(at, _)| at + 3).collect();
        places.extend(line.match_indices("\":").map(|(at, _)| at - 1));
        places.extend([0, line.len() - 1]);
        for at in places {
            let mut bytes = line.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            let mut edited = lines.clone();
            edited[index] = String::from_utf8(bytes).expect("digits");
            std::fs::write(&file, text(&edited)).expect("ours");
            // Once is enough for each: verify says it twice otherwise.
            let found = place.go(&["audit", "verify"]);
            let want = format!("{}:{}: ", name(&file), index + 1);
            assert!(found.code == 1 && found.stdout.starts_with(&want), "{want} at {at}: {}", found.stdout);
        }
        std::fs::write(&file, text(&lines)).expect("ours");
    }
    place.is_whole();
    // Back as it was, all goes on.
    place.pass(&[]);
    place.is_whole();
}

#[test]
fn an_edited_last_line_stops_everything() {
    let (place, file, lines) = some();
    std::fs::write(&file, text(&lines).replace("none of its", "some of its")).expect("ours");
    place.is_found_and_stops(&format!("{}:5", name(&file)));
}

#[test]
fn a_removed_line() {
    let (place, file, lines) = some();
    for (index, at) in [(0, format!("{}:1", name(&file))), (2, format!("{}:3", name(&file))), (4, "head:1".into())] {
        let mut fewer = lines.clone();
        fewer.remove(index);
        std::fs::write(&file, text(&fewer)).expect("ours");
        place.is_found(&at);
    }
    // The last one is gone now.
    place.is_found_and_stops("head:1");
}

#[test]
fn an_inserted_line() {
    let (place, file, lines) = some();
    // One that is there already, anywhere.
    for (copy, to) in [(0, 0), (0, 1), (1, 4), (4, 4), (4, 5), (0, 5)] {
        let mut more = lines.clone();
        more.insert(to, lines[copy].clone());
        std::fs::write(&file, text(&more)).expect("ours");
        let (whole, flaws) = place.verify();
        // Beside its twin, which of the two was there first is nobody's to say.
        let near = [to, to + 1, to + 2].map(|line| format!("{}:{line}", name(&file)));
        assert!(!whole && near.contains(&flaws[0]), "{copy} to {to}: {flaws:?}");
    }
    // A new one that is all right in itself.
    for to in 0..5 {
        let mut forged = parsed(&lines[0]);
        forged["seq"] = (to + 1).into();
        forged["prev"] = if to == 0 { "0".repeat(64).into() } else { parsed(&lines[to - 1])["hash"].clone() };
        forged["data"]["tenant_id"] = "forged".into();
        let mut more = lines.clone();
        more.insert(to, sealed(&forged));
        std::fs::write(&file, text(&more)).expect("ours");
        place.is_found(&format!("{}:{}", name(&file), to + 1));
    }
    // Garbage, and an empty line.
    for line in ["", "garbage", "{}", "null"] {
        let mut more = lines.clone();
        more.insert(2, line.into());
        std::fs::write(&file, text(&more)).expect("ours");
        place.is_found(&format!("{}:3", name(&file)));
        let mut more = lines.clone();
        more.push(line.into());
        std::fs::write(&file, text(&more)).expect("ours");
        place.is_found_and_stops(&format!("{}:6", name(&file)));
    }
}

fn forged_after(last: &str) -> String {
    let mut forged = parsed(last);
    forged["seq"] = (forged["seq"].as_u64().expect("a number") + 1).into();
    forged["prev"] = forged["hash"].clone();
    forged["data"]["tenant_id"] = "forged".into();
    sealed(&forged)
}

#[test]
fn a_forged_line_at_the_end_is_found() {
    let (place, file, mut lines) = some();
    lines.push(forged_after(&lines[4]));
    std::fs::write(&file, text(&lines)).expect("ours");
    place.is_found(&format!("{}:6", name(&file)));
}

#[test]
fn a_forged_line_at_the_end_is_never_signed() {
    let (place, file, mut lines) = some();
    lines.push(forged_after(&lines[4]));
    std::fs::write(&file, text(&lines)).expect("ours");
    place.go(&["exec", "--", "true"]);
    let (whole, _) = place.verify();
    assert!(!whole, "the forged line is part of a log that verifies");
}

#[test]
fn swapped_lines() {
    let (place, file, lines) = some();
    for (a, b) in [(0, 1), (1, 2), (1, 3), (0, 4), (3, 4)] {
        let mut swapped = lines.clone();
        swapped.swap(a, b);
        std::fs::write(&file, text(&swapped)).expect("ours");
        place.is_found(&format!("{}:{}", name(&file), a + 1));
    }
    place.is_found_and_stops(&format!("{}:4", name(&file)));
}

#[test]
fn a_truncated_one() {
    let (place, file, lines) = some();
    let whole = text(&lines);
    let last = lines[4].len();
    for cut in [2, 40, 100, last / 2, last] {
        std::fs::write(&file, &whole[..whole.len() - cut]).expect("ours");
        place.is_found_and_stops(&format!("{}:5", name(&file)));
    }
    // The whole line, and more.
    std::fs::write(&file, text(&lines[..4])).expect("ours");
    place.is_found_and_stops("head:1");
    std::fs::write(&file, text(&lines[..1])).expect("ours");
    place.is_found_and_stops("head:1");
    std::fs::write(&file, "").expect("ours");
    place.is_found_and_stops("head:1");
    std::fs::remove_file(&file).expect("ours");
    place.is_found_and_stops("head:1");
}

#[test]
fn a_newline_that_is_cut_off() {
    let (place, file, lines) = some();
    let whole = text(&lines);
    std::fs::write(&file, &whole[..whole.len() - 1]).expect("ours");
    place.is_found_and_stops(&format!("{}:5", name(&file)));
}

#[test]
fn an_edit_to_what_is_no_text() {
    let place = Place::new();
    assert_eq!(place.go(&["killswitch", "on", "--reason", "a \u{fffd} b"]).code, 0);
    let file = place.logs().pop().expect("there is one");
    let bytes = std::fs::read(&file).expect("ours");
    let at = bytes.windows(3).position(|three| three == "\u{fffd}".as_bytes()).expect("it is there");
    std::fs::write(&file, [&bytes[..at], b"\xff", &bytes[at + 3..]].concat()).expect("ours");
    place.is_found(&format!("{}:1", name(&file)));
}

#[test]
fn a_damaged_one_is_located_at_the_first_look() {
    let place = Place::new();
    let mut going = place.start(&[], &["sh", "-c", "echo ready; exec sleep 3600"]);
    going.child.kill().expect("it runs");
    going.end();
    let file = place.logs().pop().expect("there is one");
    let line = std::fs::read_to_string(&file).expect("ours");
    std::fs::write(&file, line.replace("ADMITTED", "FINISHED")).expect("ours");
    place.is_found(&format!("{}:1", name(&file)));
}
