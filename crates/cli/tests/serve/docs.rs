//! What the documentation shows is run.

use std::process::{Command, Stdio};

use crate::harness::*;

#[test]
fn the_examples_of_the_service_do_what_they_say() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/service.md")).expect("it is there");
    let examples: Vec<&str> = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 6);
    let place = Place::new();
    let service = place.serve(&[]);
    // One shell for all of them: they go on from each other.
    let mut shell = Command::new("bash");
    shell.args(["-e", "-o", "pipefail", "-c"]).arg(examples.join("\necho; echo ===\n"));
    shell.env("URL", format!("http://{}", service.address)).env("no_proxy", "*").stdin(Stdio::null());
    let ran = Ran::of(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bash is there"));
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    let said: Vec<&str> = ran.stdout.split("===\n").collect();
    for (said, part) in said.iter().zip([
        "\"stdout\":\"42\\n\"",
        "\"status\":\"running\"",
        "event: exec_event.KILLED",
        "3",
        "\"tier\":\"L1\"",
        "hello world b'\\\\x00\\\\xff'\\n",
    ]) {
        // It may wait for its turn still when it is looked at.
        let said = said.replace("\"status\":\"pending\"", "\"status\":\"running\"");
        assert!(said.contains(part), "{part} is not in {said}");
    }
}
