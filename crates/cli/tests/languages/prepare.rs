//! What a language file has made once for its toolchain, by nobody's request, and every step then reads.

use crate::harness::*;

/// What it makes is another thing each time that it is made.
const MAKES: &str = r#"echo "$EPOCHREALTIME $SRANDOM" > /work/made"#;

fn language(makes: &str, lines: &str) -> String {
    format!(
        r#"
name = "ready"
extensions = ["ready"]
package = "bash"

[tools.bash]
version = ["--version"]

[env]
FOR_TOOLS = "a variable of the tools"

[prepare]
argv = ["{{bash}}", "-c", '''{makes}''']
at = "/opt/ready"
{lines}

[[way]]
tools = ["bash"]
run.argv = ["{{bash}}", "{{entry}}", "{{prepared}}", "{{args}}"]

[[check]]
name = "reads it"
tier = "L0"
tools = ["bash"]
argv = ["{{bash}}", "-c", 'echo "$READY $1"; cat /opt/ready/made', "bash", "{{prepared}}"]
"#
    )
}

const NAMED: &str = "variable = \"READY\"\nword = \"--with=/opt/ready/made\"";

impl Place {
    fn speaks(&self, makes: &str, lines: &str) {
        self.write("mine/ready.toml", language(makes, lines));
    }

    /// A script of that language, with its Outcome.
    #[track_caller]
    fn ready(&self, words: &[&str], script: &str) -> Ran {
        let all = [&["--lang", "ready", "--code", script], words].concat();
        self.run(all).env("HOTCELL_LANGUAGES", self.path("mine")).args(&["an argument"]).go()
    }
}

#[test]
fn it_is_made_once() {
    let place = Place::new();
    place.speaks(MAKES, NAMED);
    let file = place.write("work/a.ready", "cat /opt/ready/made");
    let mine = place.path("mine");
    let run = || place.run([file.as_os_str(), "--languages".as_ref(), mine.as_os_str()]).go().passes().out();
    let made = run();
    assert!(made.len() > 20, "{made}");
    let kept = contents(&place.cache());
    assert_eq!(run(), made);
    // For every program, not for this one.
    assert_eq!(place.ready(&[], "echo another; cat /opt/ready/made").passes().out(), format!("another\n{made}"));
    assert_eq!(contents(&place.cache()), kept);
    // Thrown away, it is made again.
    std::fs::remove_dir_all(place.cache()).expect("it is ours");
    let again = run();
    assert_ne!(again, made);
    assert_eq!(run(), again);
    // Another word of the file's is another thing.
    place.speaks(&format!("{MAKES}; true"), NAMED);
    assert_ne!(run(), again);
}

#[test]
fn a_check_reads_it_too() {
    let place = Place::new();
    place.speaks(MAKES, NAMED);
    let file = place.write("work/a.ready", "cat /opt/ready/made");
    let (file, mine) = (file.to_str().expect("UTF-8"), place.path("mine"));
    let verify = || {
        let ran = place.hotcell(["verify", file, "--output", "json"]).env("HOTCELL_LANGUAGES", &mine).go();
        let outcome: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("an Outcome");
        assert_eq!(outcome["status"], "pass", "{outcome:#}");
        outcome["phases"][0]["stdout"].as_str().expect("a text").to_owned()
    };
    let said = verify();
    let made = said.strip_prefix("/opt/ready --with=/opt/ready/made\n").expect("the variable and the word");
    assert_eq!(verify(), said);
    // The same thing for a run.
    assert_eq!(place.ready(&[], "cat /opt/ready/made").passes().out(), made);
}

#[test]
fn the_program_cannot_change_it() {
    let place = Place::new();
    place.speaks(&format!("{MAKES}; mkdir /work/below; touch /work/below/file"), NAMED);
    let made = place.ready(&[], "cat /opt/ready/made").passes().out();
    let kept = contents(&place.cache());
    let tries = |at: &str| {
        format!(
            "cd {at}; for act in 'echo changed > made' 'echo more >> made' 'rm made' 'mv made other' 'touch new' \
             'chmod 777 made' 'ln made link' 'mkdir dir' 'rm -r below' 'truncate -s 0 below/file'; do \
             sh -c \"$act\" 2> /dev/null && echo \"$act\"; done; true"
        )
    };
    place.ready(&[], &tries("/opt/ready")).says("");
    let mounts = "mount -o remount,rw /opt/ready && echo mounted; umount /opt/ready && echo gone";
    assert_eq!(place.ready(&[], mounts).out(), "");
    assert_eq!(contents(&place.cache()), kept);
    place.ready(&[], "cat /opt/ready/made").says(&made);
    // The same acts where it may: all but what an earlier one has taken away.
    let copy = format!("cp -r /opt/ready /work/own; {}", tries("/work/own"));
    let said = place.ready(&[], &copy).passes().out();
    assert!(said.starts_with("echo changed > made\necho more >> made\nrm made\ntouch new\n"), "{said}");
    assert!(said.contains("mkdir dir\nrm -r below\n"), "{said}");
    assert_eq!(contents(&place.cache()), kept);
}

#[test]
fn its_variable_and_its_word() {
    let says = "echo \"${READY-none}|$#|$1|$2\"";
    for (lines, want) in [
        (NAMED, "/opt/ready|2|--with=/opt/ready/made|an argument\n"),
        ("variable = \"READY\"", "/opt/ready|1|an argument|\n"),
        ("word = \"it's {ready}\"", "none|2|it's {ready}|an argument\n"),
        ("", "none|1|an argument|\n"),
    ] {
        let place = Place::new();
        place.speaks(MAKES, lines);
        place.ready(&[], says).says(want);
    }
}

/// It is there for speed: a program runs without it as well.
#[test]
fn without_it() {
    let says = "echo \"${READY-none}|$#|$1\"; if [ -e /opt/ready ]; then echo there; fi";
    let place = Place::new();
    // No place to keep it.
    place.speaks(MAKES, NAMED);
    place.ready(&["--no-cache"], says).says("none|1|an argument\n");
    assert_eq!(place.files(&["mine"]), Vec::<String>::new(), "something was kept");
    // The toolchain came with it.
    place.speaks(MAKES, &format!("{NAMED}\nunless = \"/usr/bin/env\""));
    place.ready(&[], says).says("none|1|an argument\n");
    place.speaks(MAKES, &format!("{NAMED}\nunless = \"{{prefix}}/no/such/file\""));
    place.ready(&[], says).says("/opt/ready|2|--with=/opt/ready/made\nthere\n");
    // It cannot be made.
    for fails in ["exit 1", "echo half > /work/made; kill -9 $$", "true"] {
        place.speaks(fails, NAMED);
        place.ready(&[], says).says("none|1|an argument\n");
    }
}

/// Everybody after reads it: so nothing of one request's is in it.
#[test]
fn nothing_of_the_request_is_in_it() {
    let place = Place::new();
    let looks = "{ env; ls -AR /src /opt 2> /dev/null; cat; cat < /dev/tcp/127.0.0.1/1; echo $?; } > /work/made 2>&1";
    place.speaks(looks, NAMED);
    let file = place.write("work/secret_name.ready", "cat /opt/ready/made # a secret source");
    let words = [file.to_str().expect("UTF-8"), "--network", "local", "--env", "SECRET=of the caller"];
    let run = place.run(words).env("HOTCELL_LANGUAGES", place.path("mine")).stdin("a secret input").args(&["a secret"]);
    let made = run.go().passes().out().to_lowercase();
    assert!(!made.contains("secret") && !made.contains("do-not-tell"), "{made}");
    // What is the file's own is there.
    assert!(made.contains("for_tools=a variable of the tools\n"), "{made}");
    assert!(made.contains("unreachable") || made.contains("network"), "it has a network: {made}");
    // While the program itself is told.
    let run = place.run(words).env("HOTCELL_LANGUAGES", place.path("mine"));
    place.write("work/secret_name.ready", "echo $SECRET $FOR_TOOLS");
    run.go().says("of the caller\n");
}
