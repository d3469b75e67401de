//! The Python SDK of MCP, as it is published, against both transports and in both of its ways to begin.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::*;

#[test]
fn the_python_sdk_speaks_with_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut install = Command::new(root.join("tests/clients/python"));
    let install = install.arg("mcp").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let found = Ran::of(install.spawn().expect("it is there"));
    if found.code != 0 {
        eprintln!("skipped: the Python SDK of MCP cannot be installed here: {}", found.stderr);
        return;
    }
    let place = Place::new();
    let mounts = host_mounts();
    let token = place.key(&["--tenant", "http"]);
    let service = place.serve(&[]);
    let mut client = Command::new(found.stdout.trim());
    client.arg(root.join("crates/cli/tests/serve/mcp/sdk.py")).args([&service.address, &token]).arg(binary());
    client.env("HOME", place.dir.join("home")).env("HOTCELL_STATE_DIR", place.state()).env("no_proxy", "*");
    client.env("HOTCELL_TEST_MARK", &place.mark).stdin(Stdio::null());
    let ran = Ran::of(client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 4), "{} {}", ran.stdout, ran.stderr);
    // What was given up on ends a moment later.
    wait_until("all ends", || place.records(&["--status", "running"]).is_empty());
    for tenant in ["http", "stdio"] {
        let records = place.records(&["--tenant", tenant]);
        let of = |status: &str| records.iter().filter(|record| record["status"] == status).count();
        assert_eq!((of("completed"), of("failed"), of("killed"), of("running")), (4, 2, 2, 0), "{tenant} {records:?}");
    }
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
    nothing_left(&place.mark, &mounts);
}
