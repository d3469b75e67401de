//! What a run left, and what is to be said of it.

use serde_json::Value;

pub struct Ran {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// Null unless it was asked for.
    pub outcome: Value,
}

impl Ran {
    pub fn class(&self) -> &str {
        self.outcome["failure_class"].as_str().unwrap_or("none")
    }

    /// What ended the run, or `none`.
    pub fn terminal(&self) -> &str {
        self.outcome["terminal_event"].as_str().unwrap_or("none")
    }

    /// The classes of all attempts, in their order.
    pub fn classes(&self) -> Vec<&str> {
        let all = self.outcome["violations"].as_array().map(Vec::as_slice);
        all.unwrap_or_default().iter().filter_map(|v| v["class"].as_str()).collect()
    }

    pub fn out(&self) -> &str {
        self.outcome["stdout"].as_str().unwrap_or_default()
    }

    /// What the program says of one thing that it tried: `done`, or the name of an errno.
    #[track_caller]
    pub fn tells(&self, what: &str) -> &str {
        self.out()
            .lines()
            .find_map(|line| line.strip_prefix(what)?.strip_prefix(' '))
            .unwrap_or_else(|| panic!("nothing of `{what}` in: {:#}", self.outcome))
    }

    #[track_caller]
    pub fn passes(&self) -> &Ran {
        assert_eq!(self.outcome["status"], "pass", "{}\n{}", self.stderr, self.outcome);
        assert_eq!((self.class(), self.code), ("none", 0), "{}", self.outcome);
        assert_eq!(self.outcome["violations"], Value::Array(vec![]), "{}", self.outcome);
        self
    }

    /// Exactly this class, with evidence, and the exit status that goes with it.
    #[track_caller]
    pub fn violates(&self, class: &str) -> &Ran {
        assert_eq!(self.class(), class, "{}\n{:#}", self.stderr, self.outcome);
        assert_eq!(self.outcome["status"], "fail");
        assert!(self.outcome["evidence"].is_string(), "no evidence: {}", self.outcome);
        assert!(!self.attempts(class).is_empty(), "not listed: {}", self.outcome);
        assert_eq!(self.code, if class == "TimeoutViolation" { 124 } else { 123 });
        self
    }

    /// Failed by itself, with this exit code, and is accused of nothing.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Ran {
        assert_eq!(self.class(), "RuntimeError", "{}\n{}", self.stderr, self.outcome);
        assert_eq!((self.outcome["exit_code"].as_i64(), self.code), (Some(code.into()), code));
        assert_eq!(self.outcome["violations"], Value::Array(vec![]), "{}", self.outcome);
        self
    }

    #[track_caller]
    pub fn is_signaled(&self, signal: i32) -> &Ran {
        assert_eq!(self.class(), "Signaled", "{}\n{}", self.stderr, self.outcome);
        assert_eq!((self.outcome["signal"].as_i64(), self.code), (Some(signal.into()), 128 + signal));
        assert_eq!(self.outcome["violations"], Value::Array(vec![]), "{}", self.outcome);
        self
    }

    /// The details of all attempts of one class.
    pub fn attempts(&self, class: &str) -> Vec<&Value> {
        let all = self.outcome["violations"].as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter(|v| v["class"] == class).map(|v| &v["detail"]).collect()
    }

    /// Refused before anything ran: one sentence, exit 125.
    #[track_caller]
    pub fn refused(&self, part: &str) -> &Ran {
        assert_eq!(self.code, 125, "{}\n{}", self.stderr, String::from_utf8_lossy(&self.stdout));
        assert!(self.stderr.contains(part), "`{part}` is not in: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}
