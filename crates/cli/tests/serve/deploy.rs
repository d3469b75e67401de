//! The service under a service manager: the unit that is given with it, and what the manager is told.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::*;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

fn unit() -> String {
    std::fs::read_to_string(Path::new(DEPLOY).join("hotcell.service")).expect("it is there")
}

/// What systemd has to say against a unit, which starts what was built here.
fn verified(place: &Place, unit: &str) -> (bool, String) {
    let file = place.dir.join("hotcell.service");
    let binary = binary();
    std::fs::write(&file, unit.replace("/usr/local/bin/hotcell", binary.to_str().expect("UTF-8"))).expect("our own");
    let said = Command::new("systemd-analyze").arg("verify").arg(&file).output().expect("systemd-analyze is there");
    (said.status.success(), String::from_utf8_lossy(&said.stderr).into_owned())
}

#[test]
fn the_unit_is_one_that_systemd_understands() {
    let place = Place::new();
    assert_eq!(verified(&place, &unit()), (true, String::new()));
    let (_, said) = verified(&place, &unit().replace("KillMode=", "KilMode="));
    assert!(said.contains("KilMode"), "{said}");
}

#[test]
fn the_unit_waits_for_the_grace_and_its_flags_are_ours() {
    let unit = unit();
    let line = |name: &str| unit.lines().find_map(|line| line.strip_prefix(name)).expect("it is in the unit");
    let seconds = |text: &str| text.strip_suffix('s').and_then(|n| n.parse::<u64>().ok()).expect("seconds");
    let words: Vec<&str> = line("ExecStart=").split(' ').skip(2).collect();
    let grace = words.iter().position(|word| *word == "--grace").map(|at| seconds(words[at + 1])).expect("it is said");
    // Ten seconds for results, and four for answers that are on their way.
    assert!(seconds(line("TimeoutStopSec=")) >= grace + 14);
    let place = Place::new();
    let service = place.serve(&words[2..]);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
}

#[test]
fn the_service_manager_is_told_when_it_listens_and_when_it_ends() {
    let place = Place::new();
    let path = place.dir.join("notify");
    let abstract_name = format!("{}-notify", place.mark);
    let named = UnixDatagram::bind(&path).expect("a socket");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).expect("our own");
    let nameless = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
    let nameless = UnixDatagram::bind_addr(&nameless).expect("a socket");
    for (socket, name) in [(named, path.to_str().expect("UTF-8").to_owned()), (nameless, format!("@{abstract_name}"))] {
        socket.set_read_timeout(Some(DEADLINE)).expect("a socket");
        let heard = || {
            let mut bytes = [0; 200];
            let n = socket.recv(&mut bytes).expect("it is said");
            String::from_utf8_lossy(&bytes[..n]).into_owned()
        };
        let service = place.serve_with(&[], &[("NOTIFY_SOCKET", &name)]);
        assert_eq!(heard(), format!("READY=1\nSTATUS=listening on http://{}", service.address));
        service.signal("TERM");
        assert!(heard().starts_with("STOPPING=1\n"));
        assert_eq!(service.wait(), Some(0));
    }
}

#[test]
fn a_service_manager_that_is_not_there_keeps_nobody_from_serving() {
    let place = Place::new();
    let service = place.serve_with(&[], &[("NOTIFY_SOCKET", "/nonexistent/notify")]);
    assert_eq!(service.get("/healthz").status, 200);
    assert!(place.log().contains("cannot be told"), "{}", place.log());
}
