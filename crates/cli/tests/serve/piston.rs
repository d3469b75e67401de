//! Piston's API as it is on the wire: its shapes, its statuses, its sentences.

use serde_json::{Value, json};

use crate::client::{Answer, request};
use crate::harness::*;

#[track_caller]
fn execute(service: &Service<'_>, body: &Value) -> Value {
    let answer = service.post("/api/v2/execute", body);
    assert_eq!(answer.status, 200, "{} {}", answer.text(), service.place.log());
    assert_eq!(answer.headers["content-type"], "application/json; charset=utf-8");
    answer.json()
}

fn source(language: &str, content: &str) -> Value {
    json!({ "language": language, "version": "*", "files": [{ "content": content }] })
}

/// A refusal as Piston has them.
#[track_caller]
fn is_refusal(answer: &Answer, status: u16, message: &str) {
    assert_eq!((answer.status, answer.json()), (status, json!({ "message": message })));
}

fn keys_of(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn what_can_be_run_is_told_in_pistons_words() {
    let place = Place::new();
    let service = place.serve(&[]);
    let answer = service.get("/api/v2/runtimes");
    assert_eq!((answer.status, answer.headers["content-type"].as_str()), (200, "application/json; charset=utf-8"));
    let all = answer.json();
    let all = all.as_array().expect("a list");
    let find = |name: &str| all.iter().find(|runtime| runtime["language"] == name).unwrap_or_else(|| panic!("{name}"));
    let has = |name: &str, alias: &str| find(name)["aliases"].as_array().expect("a list").contains(&json!(alias));
    for (name, aliases, runtime) in [
        ("python", vec!["py", "py3", "python3"], None),
        ("javascript", vec!["js", "node-js", "node"], Some("node")),
        ("c++", vec!["cpp", "g++"], Some("gcc")),
        ("c", vec!["gcc"], Some("gcc")),
        ("go", vec!["golang"], None),
        ("java", vec![], None),
        ("bash", vec!["sh"], None),
    ] {
        let found = find(name);
        assert!(aliases.iter().all(|alias| has(name, alias)), "{found}");
        let version = found["version"].as_str().expect("a version");
        assert!(
            version.split('.').count() == 3 && version.split('.').all(|part| part.parse::<u64>().is_ok()),
            "{found}"
        );
        let keys = if runtime.is_some() {
            vec!["aliases", "language", "runtime", "version"]
        } else {
            vec!["aliases", "language", "version"]
        };
        assert_eq!((keys_of(found), found["runtime"].as_str()), (keys, runtime));
    }
    assert!(!all.iter().any(|runtime| runtime["language"] == "cpp"), "{all:?}");
}

#[test]
fn a_program_answers_as_it_does_there() {
    let place = Place::new();
    let service = place.serve(&[]);
    let said = execute(
        &service,
        &json!({
            "language": "py3", "version": ">=3 <4", "stdin": "a line", "args": ["x", 2],
            "files": [
                { "name": "data.bin", "content": "AP8=", "encoding": "base64" },
                { "name": "main.py", "content": "import os, sys, lib.part\n\
                    print(lib.part.x, sys.argv[1:], repr(sys.stdin.read()), os.environ['PISTON_LANGUAGE'], flush=True)\n\
                    print(open('data.bin', 'rb').read(), open('./lib/more').read(), flush=True)\n\
                    open('data.bin', 'w').write('new'); open('own', 'w').close(); print(open('data.bin').read())" },
                { "name": "./lib/part.py", "content": "x = 7" },
                { "name": "lib/more", "content": "6d6f7265", "encoding": "hex" },
            ],
            "compile_timeout": 10000, "run_timeout": 40000, "compile_memory_limit": -1, "run_memory_limit": -1,
        }),
    );
    let runtimes = service.get("/api/v2/runtimes").json();
    let python =
        runtimes.as_array().expect("a list").iter().find(|one| one["language"] == "python").expect("it is there");
    assert_eq!((&said["language"], &said["version"]), (&json!("python"), &python["version"]));
    assert_eq!(keys_of(&said), ["language", "run", "version"]);
    let run = &said["run"];
    let all = ["code", "cpu_time", "memory", "message", "output", "signal", "status", "stderr", "stdout", "wall_time"];
    assert_eq!(keys_of(run), all);
    let (first, last) = ("7 ['x', '2'] 'a line\\n' python\n", "b'\\x00\\xff' more\nnew\n");
    let all = json!(format!("{first}{last}"));
    assert_eq!((&run["stdout"], &run["stderr"], &run["output"]), (&all, &json!(""), &all));
    assert_eq!(
        (&run["code"], &run["signal"], &run["status"], &run["message"]),
        (&json!(0), &json!(null), &json!(null), &json!(null))
    );
    assert!(run["memory"].as_u64() > Some(0) && run["wall_time"].is_u64() && run["cpu_time"].is_u64(), "{run}");
    // It is a run like any other.
    assert_eq!(place.records(&[])[0]["status"], "completed");
    place.is_whole();
}

#[test]
fn the_streams_are_together_as_they_came() {
    let place = Place::new();
    let service = place.serve(&[]);
    // More than both pipes hold: neither can be said to its end before some of the other is heard.
    let code = "import sys\nfor n in range(1000):\n    print('o' * 200, flush=True)\n    print('e' * 200, file=sys.stderr, flush=True)";
    let run = execute(&service, &source("python", code))["run"].clone();
    let output = run["output"].as_str().expect("text");
    let of = |letter: char| output.chars().filter(|c| *c == letter).count();
    assert_eq!((of('o'), of('e'), output.lines().count()), (200_000, 200_000, 2000));
    assert!(output.find('e') < output.rfind('o') && output.find('o') < output.rfind('e'), "one behind the other");
    assert_eq!(run["stdout"].as_str().map(str::len), Some(201_000));
}

#[test]
fn what_is_compiled_has_a_stage_for_it() {
    let place = Place::new();
    let service = place.serve(&[]);
    // Without a name, and with one that no compiler takes.
    let main =
        "#include <stdio.h>\nint seven(void);\nint main(void) { int unused; printf(\"%d\", seven()); return 3; }";
    let mut body = source("gcc", main);
    body["files"].as_array_mut().expect("a list").push(json!({ "content": "int seven(void) { return 7; }" }));
    for is_first in [true, false] {
        let said = execute(&service, &body);
        assert_eq!(
            (&said["language"], &said["run"]["stdout"], &said["run"]["code"]),
            (&json!("c"), &json!("7"), &json!(3))
        );
        assert_eq!((&said["compile"]["code"], &said["compile"]["status"]), (&json!(0), &json!(null)));
        let warned = |field: &str| said["compile"][field].as_str().expect("text").contains("unused");
        // What was compiled before is not compiled again.
        assert_eq!((warned("stderr"), warned("output")), (is_first, is_first), "{said}");
    }
    let mut body = source("c", "int main(void) { return x; }");
    body["files"][0]["name"] = "prog".into();
    let said = execute(&service, &body);
    assert_eq!(said["run"], said["compile"]);
    let run = &said["run"];
    assert_eq!(
        (&run["code"], &run["status"], &run["message"]),
        (&json!(1), &json!("RE"), &json!("Exited with error status 1"))
    );
    assert!(run["output"].as_str().expect("text").contains("prog.c:1"), "{run}");
    // Its own limit of processor time: a compiler that starts has used more.
    body["compile_cpu_time"] = json!(1);
    body["files"][0]["content"] =
        format!("{}int main(void) {{ return 0; }}", "#include <math.h>\n".repeat(2000)).into();
    let said = execute(&service, &body);
    assert_eq!((&said["compile"]["status"], &said["compile"]["signal"]), (&json!("TO"), &json!("SIGKILL")), "{said}");
}

#[test]
fn how_it_ended_is_told_by_evidence() {
    let place = Place::new();
    place.define("small", "max_output_mb = 1\nmax_memory_mb = 64");
    let service = place.serve(&["--policy", "small"]);
    let null = || json!(null);
    let killed = || json!("SIGKILL");
    let much = "head -c 3000000 /dev/zero | tr '\\0' x";
    for (code, more, end, message) in [
        ("exit 0", json!({}), (json!(0), null(), null()), ""),
        ("exit 7", json!({}), (json!(7), null(), json!("RE")), "Exited with error status 7"),
        // What it says is not what happened.
        ("echo Killed; exit 137", json!({}), (json!(137), null(), json!("RE")), "Exited with error status 137"),
        ("kill -SEGV $$", json!({}), (null(), json!("SIGSEGV"), json!("SG")), "Caught fatal signal 11"),
        ("kill -KILL $$", json!({}), (null(), killed(), json!("SG")), "Caught fatal signal 9"),
        (
            "sleep 3000",
            json!({ "run_timeout": 200 }),
            (null(), killed(), json!("TO")),
            "Time limit exceeded (wall clock)",
        ),
        ("while :; do :; done", json!({ "run_cpu_time": 200 }), (null(), killed(), json!("TO")), "Time limit exceeded"),
        (much, json!({}), (null(), killed(), json!("OL")), "stdout length exceeded"),
        (&format!("({much}) >&2"), json!({}), (null(), killed(), json!("EL")), "stderr length exceeded"),
        (
            "x=x; while :; do x=$x$x; done",
            json!({}),
            (null(), killed(), json!("SG")),
            "Caught fatal signal 9; MemoryLimitViolation: ",
        ),
        // It swallows the error, and has failed all the same.
        (
            "exec 3<>/dev/tcp/192.0.2.1/80; exit 0",
            json!({}),
            (json!(0), null(), json!("RE")),
            "NetworkAccessViolation: ",
        ),
    ] {
        let mut body = source("bash", code);
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let run = execute(&service, &body)["run"].clone();
        assert_eq!((run["code"].clone(), run["signal"].clone(), run["status"].clone()), end, "{code}: {run}");
        let said = run["message"].as_str().unwrap_or_default();
        let is_right = if message.ends_with(": ") { said.starts_with(message) } else { said == message };
        assert!(is_right, "{code}: {said}");
    }
}

#[test]
fn what_is_wrong_is_told_in_pistons_sentences() {
    let place = Place::new();
    place.define("mine", "max_cpu_seconds = 2\nscratch_mb = 1");
    let service = place.serve(&["--policy", "mine"]);
    let file = || json!([{ "content": "exit" }]);
    let with = |more: Value| {
        let mut body = json!({ "language": "bash", "version": "*", "files": file() });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    for (body, message) in [
        (json!({}), "language is required as a string"),
        (json!([]), "language is required as a string"),
        (json!({ "language": "" }), "language is required as a string"),
        (json!({ "language": 1 }), "language is required as a string"),
        (json!({ "language": "bash" }), "version is required as a string"),
        (json!({ "language": "bash", "version": 5 }), "version is required as a string"),
        (with(json!({ "files": null })), "files is required as an array"),
        (with(json!({ "files": "x" })), "files is required as an array"),
        (with(json!({ "files": [{ "content": "1" }, {}] })), "files[1].content is required as a string"),
        (with(json!({ "files": [null] })), "files[0].content is required as a string"),
        (with(json!({ "files": [] })), "files must include at least one utf8 encoded file"),
        (
            with(json!({ "files": [{ "content": "", "encoding": "hex" }] })),
            "files must include at least one utf8 encoded file",
        ),
        (
            with(json!({ "files": [{ "content": "", "encoding": "latin" }] })),
            "files must include at least one utf8 encoded file",
        ),
        (with(json!({ "language": "whitespace" })), "whitespace-* runtime is unknown"),
        (with(json!({ "version": "<1" })), "bash-<1 runtime is unknown"),
        (with(json!({ "version": "latest" })), "bash-latest runtime is unknown"),
        (with(json!({ "run_timeout": "1" })), "If specified, run_timeout must be a number"),
        (with(json!({ "compile_memory_limit": [] })), "If specified, compile_memory_limit must be a number"),
        (with(json!({ "run_timeout": -5 })), "run_timeout must be non-negative"),
        (with(json!({ "run_timeout": 45001 })), "run_timeout cannot exceed the configured limit of 45000"),
        (with(json!({ "compile_timeout": 1e30 })), "compile_timeout cannot exceed the configured limit of 120000"),
        (
            with(json!({ "run_memory_limit": 1u64 << 31 })),
            "run_memory_limit cannot exceed the configured limit of 1073741824",
        ),
        (
            with(json!({ "compile_memory_limit": 1u64 << 40, "run_timeout": 45001 })),
            "compile_memory_limit cannot exceed the configured limit of 2147483648",
        ),
        (with(json!({ "run_cpu_time": 2001 })), "run_cpu_time cannot exceed the configured limit of 2000"),
        (with(json!({ "stdin": 1 })), "stdin must be a string"),
        (with(json!({ "args": "x" })), "args must be an array of strings"),
        (with(json!({ "args": [{}] })), "args must be an array of strings"),
        (
            with(json!({ "files": [{ "content": "", "name": "../x" }] })),
            "File path \"../x\" tries to escape parent directory",
        ),
    ] {
        is_refusal(&service.post("/api/v2/execute", &body), 400, message);
    }
    // What the policy refused is on record, and nothing has run.
    let records = place.records(&[]);
    assert_eq!(records.iter().filter(|record| record["status"] == "denied").count(), records.len());
    assert_eq!(records.len(), 5);
    // The harmless twin: what is left out, nothing and -1 are the policy's own.
    let open = json!({ "run_timeout": null, "compile_timeout": 0, "run_memory_limit": -1, "run_cpu_time": 2000, "stdin": null, "args": null, "who": "knows" });
    assert_eq!(execute(&service, &with(open))["run"]["code"], 0);
    for (method, path, kind, body, status, message) in [
        ("POST", "/api/v2/execute", "text/plain", "{}", 415, "requests must be of type application/json"),
        ("POST", "/api/v2/nowhere", "text/plain", "{}", 415, "requests must be of type application/json"),
        ("POST", "/api/v2/execute", "application/json; charset=utf-8", "", 400, "language is required as a string"),
        ("POST", "/api/v2/runtimes", "application/json", "{}", 404, "Not Found"),
        ("GET", "/api/v2/execute", "application/json", "", 404, "Not Found"),
        ("GET", "/api/v2/connect", "application/json", "", 404, "Not Found"),
        ("GET", "/api/v2/packages/x", "application/json", "", 404, "Not Found"),
        ("GET", "/api/v2/", "application/json", "", 404, "Not Found"),
    ] {
        let kind = format!("Content-Type: {kind}");
        is_refusal(&service.raw(request(method, path, &[&kind], body.as_bytes())), status, message);
    }
    // Files that do not fit into the working directory.
    let large = service
        .post("/api/v2/execute", &with(json!({ "files": [{ "content": format!("exit #{}", "x".repeat(2 << 20)) }] })));
    assert_eq!(large.status, 400);
    assert!(large.json()["message"].as_str().expect("a sentence").contains("scratch"), "{}", large.text());
    let broken = service.ask("POST", "/api/v2/execute", &[], b"{\"language\": ");
    assert_eq!(broken.status, 400);
    assert!(broken.json()["message"].as_str().expect("a sentence").contains("not JSON"), "{}", broken.text());
}

#[test]
fn keys_policies_and_quotas_are_those_of_every_run() {
    let place = Place::new();
    place.define("once", "allowed_languages = [\"bash\"]\nmax_executions_per_hour = 1");
    let token = place.key(&["--tenant", "a", "--policy", "once"]);
    let reader = place.key(&["--tenant", "b", "--scope", "read"]);
    let service = place.serve(&[]);
    let body = source("bash", "exit").to_string();
    let ask = |header: &str, body: &str| service.ask("POST", "/api/v2/execute", &[header], body.as_bytes());
    for header in ["X: y", "Authorization: hc_1_2", "Authorization: Basic x"] {
        let answer = ask(header, &body);
        assert_eq!((answer.status, keys_of(&answer.json())), (401, vec!["message"]));
        assert!(answer.headers["www-authenticate"].starts_with("Bearer"));
    }
    assert_eq!(service.get("/api/v2/runtimes").status, 401);
    assert_eq!(ask(&format!("Authorization: {reader}"), &body).status, 403);
    // As its clients send a key, and as ours do.
    for header in
        [format!("Authorization: {token}"), format!("Authorization: Bearer {token}"), format!("X-API-Key: {token}")]
    {
        let list = service.ask("GET", "/api/v2/runtimes", &[&header], b"").json();
        assert_eq!((list.as_array().map(Vec::len), &list[0]["language"]), (Some(1), &json!("bash")));
    }
    let header = format!("Authorization: {token}");
    let refused = ask(&header, &source("python", "1").to_string());
    assert_eq!(refused.status, 403);
    assert!(refused.json()["message"].as_str().expect("a sentence").contains("python"), "{}", refused.text());
    assert_eq!(ask(&header, &body).status, 200);
    let again = ask(&header, &body);
    assert_eq!((again.status, keys_of(&again.json())), (429, vec!["message"]));
    assert!(again.headers["retry-after"].parse::<u64>().is_ok());
    assert_eq!(place.records(&["--status", "completed"])[0]["tenant_id"], "a");
}

#[test]
fn who_goes_away_takes_his_run_with_him() {
    let place = Place::new();
    let service = place.serve(&[]);
    let mut connection = service.connect();
    let body = source("bash", "sleep 3000").to_string();
    connection.send(request("POST", "/api/v2/execute", &["Content-Type: application/json"], body.as_bytes()));
    wait_until("its record", || place.records(&["--status", "running"]).len() == 1);
    drop(connection);
    wait_until("its end", || place.records(&["--status", "killed"]).len() == 1);
}
