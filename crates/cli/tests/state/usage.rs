//! What the verbs of the state say of themselves, and to those who leave a word out.

use crate::harness::*;

#[test]
fn a_verb_that_is_left_out_is_named() {
    let place = Place::new();
    for (verb, below) in [
        ("policy", "list, show, check, define or delete"),
        ("audit", "tail, verify or export"),
        ("killswitch", "on, off or status"),
    ] {
        let lacks = format!("`hotcell {verb}` lacks its verb: use {below}");
        place.go(&[verb]).refused(&[&lacks]);
        place.go(&[verb, "wrong"]).refused(&[&format!("`wrong` is no verb of `hotcell {verb}`: use {below}")]);
    }
    place.go(&["policy", "--output", "json"]).refused(&["`hotcell policy` lacks its verb", "list"]);
    // Nobody is sent to `exec` who did not ask for it.
    place.go(&["stats", "word"]).refused(&["unexpected argument 'word'", "--help"]);
    place.go(&["exec", "word"]).refused(&["`word` must stand behind `--`"]);
    place.go(&[]).refused(&["no command was given", "hotcell run FILE"]);
    assert_eq!(place.go(&["policy", "list"]).code, 0);
    assert!(!place.state().exists(), "a look has made something");
}

/// The pages of help, from the first down to every verb below a verb.
fn pages(place: &Place, words: &[&str], each: &mut dyn FnMut(&str, &str)) {
    let page = place.go(&[words, &["-h"]].concat());
    assert_eq!((page.code, page.stderr.as_str()), (0, ""), "{words:?}");
    each(&words.join(" "), &page.stdout);
    let commands = page.stdout.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in commands.take_while(|line| !line.is_empty()) {
        let verb = line.split_whitespace().next().expect("a name");
        pages(place, &[words, &[verb]].concat(), each);
    }
}

#[test]
fn every_word_has_a_text() {
    let place = Place::new();
    let (mut flags, mut seen) = (0, vec![]);
    pages(&place, &[], &mut |verb, page| {
        seen.push(verb.to_owned());
        let lines: Vec<&str> = page.lines().skip_while(|line| !line.ends_with(':') || line.starts_with(' ')).collect();
        for (index, line) in lines.iter().enumerate() {
            let word = line.trim_start();
            if line.len() == word.len() || !word.starts_with(['-', '<', '[']) {
                continue;
            }
            flags += 1;
            // Beside it, or on a line of its own below.
            let below = lines.get(index + 1).map_or("", |next| next.trim_start());
            let text = word.split_once("  ").map_or(below, |(_, text)| text).trim_start();
            assert!(
                text.starts_with(|c: char| c.is_alphanumeric() || c == '/'),
                "`hotcell {verb}` does not say what {line} is"
            );
        }
    });
    assert!(flags > 100, "{flags}");
    for verb in ["records", "stats", "killswitch off", "audit tail", "policy show"] {
        assert!(seen.iter().any(|known| known == verb), "{verb} is not among {seen:?}");
    }
}
