//! Clients of Piston's that people have, as they are: they know nothing of us.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::*;

/// Runs a client to its end: what it printed, as JSON. Where it is to go it is told by `URL`, and by nobody else.
#[track_caller]
fn said(service: &Service<'_>, program: &Path, words: &[&str], dir: &Path) -> Value {
    let mut command = Command::new(program);
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_ascii_uppercase());
    }
    command.args(words).current_dir(dir).env("URL", format!("http://{}", service.address)).stdin(Stdio::null());
    command.env("KEY", service.key.as_deref().unwrap_or_default());
    let ran = Ran::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    assert_eq!(ran.code, 0, "{} {}", ran.stderr, service.place.log());
    ran.json()
}

const PYTHON: &str = r##"
import asyncio, json, os
import piston_rspy as piston

URL = os.environ["URL"] + "/api/v2"

async def main():
    client = piston.Client.with_url_and_key(URL, os.environ["KEY"])
    runtimes = await client.fetch_runtimes()
    def executor(language, content, **more):
        return piston.Executor(language=language, version="*", files=[piston.File(name="", content=content)], **more)
    good = await client.execute(executor("py", "import sys\nprint(input(), *sys.argv[1:])", stdin="hi", args=["a", "b"]))
    compiled = await client.execute(executor("c", "#include <stdio.h>\nint main() { puts(\"c\"); return 0; }"))
    failed = await client.execute(executor("bash", "echo bad >&2; exit 3"))
    unknown = await client.execute(executor("nothing", "1"))
    stranger = await piston.Client.with_url_and_key(URL, "no-key").execute(executor("bash", "exit"))
    print(json.dumps({
        "languages": sorted(runtime.language for runtime in runtimes),
        "good": [good.language, good.run.output, good.run.code, good.is_ok(), good.compile is None, good.status],
        "compiled": [compiled.language, compiled.run.output, compiled.compile.code, compiled.is_ok()],
        "failed": [failed.run.stderr, failed.run.code, failed.run.is_err()],
        "unknown": [unknown.status, unknown.run.output],
        "stranger": stranger.status,
    }), flush=True)
    # Its threads outlive the interpreter, and have crashed in what was left of it.
    os._exit(0)

asyncio.run(main())
"##;

#[test]
fn piston_rspy_is_served() {
    let bin = match made_once::python("piston-rspy-0.4.3", &[], &["piston-rspy==0.4.3"]) {
        Ok(bin) => bin,
        Err(why) => return eprintln!("skipped: piston-rspy is not to be had: {why}"),
    };
    let place = Place::new();
    let key = place.key(&[]);
    let mut service = place.serve(&[]);
    service.key = Some(key);
    let said = said(&service, &bin.join("python"), &["-c", PYTHON], &bin);
    let languages = said["languages"].as_array().expect("a list");
    assert!(["python", "c++", "javascript"].iter().all(|name| languages.contains(&json!(name))), "{said}");
    assert_eq!(said["good"], json!(["python", "hi a b\n", 0, true, true, 200]));
    assert_eq!(said["compiled"], json!(["c", "c\n", 0, true]));
    assert_eq!(said["failed"], json!(["bad\n", 3, true]));
    assert_eq!(said["unknown"][0], 400);
    assert!(said["unknown"][1].as_str().is_some_and(|text| text.contains("nothing-* runtime is unknown")), "{said}");
    assert_eq!(said["stranger"], 401);
}

const NODE: &str = r#"
const { PistonClient, NodePistonClient } = require('piston-api-client');

(async () => {
  const answers = [];
  for (const Client of [PistonClient, NodePistonClient]) {
    const client = new Client({ server: process.env.URL });
    const runtimes = await client.runtimes();
    const good = await client.execute({
      language: 'node-js', version: '*', args: ['Hello', 'World'],
      files: [{ content: 'console.log(process.argv.slice(2))' }],
    });
    const killed = await client.execute({
      language: 'bash', version: '5.x', files: [{ content: 'sleep 3000' }], run_timeout: 200,
    });
    answers.push({
      languages: runtimes.data.map((runtime) => runtime.language),
      good: [good.success, good.data.language, good.data.run.output, good.data.run.code, good.data.run.signal],
      killed: [killed.success, killed.data.run.code, killed.data.run.signal],
    });
  }
  console.log(JSON.stringify(answers));
  // The client would wait for a day, to forget its runtimes.
  process.exit(0);
})();
"#;

#[test]
fn piston_api_client_is_served() {
    let dir = match made_once::node("piston-api-client-2.0.1", &["piston-api-client@2.0.1"]) {
        Ok(dir) => dir,
        Err(why) => return eprintln!("skipped: piston-api-client is not to be had: {why}"),
    };
    let place = Place::new();
    let service = place.serve(&[]);
    // It has no place for a key.
    let answers = said(&service, Path::new("node"), &["-e", NODE], &dir);
    assert_eq!(answers.as_array().map(Vec::len), Some(2));
    for answer in answers.as_array().into_iter().flatten() {
        assert!(answer["languages"].as_array().expect("a list").contains(&json!("c++")), "{answer}");
        assert_eq!(answer["good"], json!([true, "javascript", "[ 'Hello', 'World' ]\n", 0, null]));
        assert_eq!(answer["killed"], json!([true, null, "SIGKILL"]));
    }
}
