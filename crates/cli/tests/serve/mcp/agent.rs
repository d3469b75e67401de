//! `hotcell mcp` and a client of it that writes and reads lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::harness::*;

pub struct Agent {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    errors: Option<std::thread::JoinHandle<String>>,
    next: u64,
}

pub fn initialize(id: u64) -> Value {
    message(
        id,
        "initialize",
        &json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a test", "version": "1" } }),
    )
}

pub fn message(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The first text of an answer, which is ours.
pub fn verdict(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().expect("it begins with a text")
}

impl Agent {
    /// Not greeted yet.
    pub fn spawn(place: &Place, words: &[&str]) -> Agent {
        let mut command = place.hotcell(&[&["mcp"], words].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let (say, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Nothing else may ever stand there.
                let value: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                assert_eq!(value["jsonrpc"], "2.0", "{line}");
                let _ = say.send(value);
            }
        });
        let stdin = child.stdin.take();
        Agent { child, stdin, lines, errors: Some(errors), next: 1 }
    }

    #[track_caller]
    pub fn start(place: &Place, words: &[&str]) -> Agent {
        let mut agent = Agent::spawn(place, words);
        agent.send(&initialize(0));
        let hello = agent.receive();
        assert_eq!((&hello["id"], &hello["result"]["protocolVersion"]), (&json!(0), &json!("2025-06-18")));
        agent.send(&notification("notifications/initialized", &json!({})));
        agent
    }

    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    #[track_caller]
    pub fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("it is open").write_all(bytes).expect("it reads");
    }

    pub fn write_as_far_as_it_reads(&mut self, bytes: &[u8]) {
        let _ = self.stdin.as_mut().map(|stdin| stdin.write_all(bytes));
    }

    #[track_caller]
    pub fn receive(&mut self) -> Value {
        self.lines.recv_timeout(DEADLINE).expect("an answer comes")
    }

    /// Sends it, and does not wait: its id.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&message(id, method, params));
        id
    }

    /// The answer to the only thing that was asked.
    #[track_caller]
    pub fn answer(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.answer("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// A run that sleeps, once it does.
    #[track_caller]
    pub fn sleeper(&mut self, place: &Place) -> u64 {
        let arguments = json!({ "command": ["sleep", "3000"], "environment": { "HOTCELL_TEST_MARK": place.mark } });
        let before = place.records(&["--status", "running"]).len();
        let id = self.ask("tools/call", &json!({ "name": "run_command", "arguments": arguments }));
        wait_until("a run", || place.records(&["--status", "running"]).len() > before);
        id
    }

    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Its end: the exit status, and what it said to people.
    #[track_caller]
    pub fn end(&mut self) -> (Option<i32>, String) {
        let status = end_of(&mut self.child).expect("it ends");
        (status.code(), self.errors.take().expect("once").join().expect("it reads"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
