//! From what a client of Piston's wrote to a Job: its fields, its defaults, its sentences about what is wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hotcell_contract::{Base64, Bytes, FailureClass, LowerLimits, RunRequest};
use hotcell_engine::{Language, limits_of};
use serde_json::Value;

use super::Refusal;
use super::runtimes::{self, Runtime};
use crate::auth::Caller;
use crate::convert::{Job, job_of};
use crate::problem::{Problem, shown};
use crate::run::{How, Run};
use crate::service::Service;

/// Everything that a request says, understood.
pub(super) struct Asked {
    pub(super) runtime: Runtime,
    request: RunRequest,
    limits: Limits,
    bytes: usize,
}

/// Milliseconds and bytes; `None` is the policy's.
#[derive(Clone, Copy, Default)]
struct Limits {
    compile_memory: Option<u64>,
    run_memory: Option<u64>,
    compile_timeout: Option<u64>,
    run_timeout: Option<u64>,
    compile_cpu: Option<u64>,
    run_cpu: Option<u64>,
}

struct File {
    name: Option<String>,
    bytes: Vec<u8>,
    is_source: bool,
}

impl Asked {
    /// Looks for the runtime too, which takes long the first time: for a thread that may wait.
    pub(super) fn of(service: &Arc<Service>, body: &Value, bytes: usize) -> Result<Asked, Refusal> {
        let language = text(body, "language")?;
        let version = text(body, "version")?;
        let files = files(body)?;
        let unknown = || Refusal::bad(format!("{}-{} runtime is unknown", shown(language), shown(version)));
        let runtime = runtimes::find(service, language, version).ok_or_else(unknown)?;
        let ours = service.catalogue.by_name(&runtime.ours).ok_or_else(unknown)?;
        let first = files.iter().position(|file| file.is_source);
        let first = first.ok_or_else(|| Refusal::bad("files must include at least one utf8 encoded file"))?;
        let limits = Limits::of(body)?;
        let (entry, files) = named(ours, files, first)?;
        let stdin = match &body["stdin"] {
            Value::Null => String::new(),
            Value::String(stdin) => stdin.clone(),
            _ => return Err(Refusal::bad("stdin must be a string")),
        };
        let request = RunRequest {
            language: Some(ours.name.clone()),
            files: Some(files),
            entry: Some(entry),
            args: args(&body["args"])?,
            stdin: Some(Bytes::Text(stdin)),
            environment: BTreeMap::from([("PISTON_LANGUAGE".into(), runtime.language.clone())]),
            limits: LowerLimits {
                wall_ms: limits.run_timeout,
                cpu_ms: limits.run_cpu,
                memory_bytes: limits.run_memory,
                compile_wall_ms: limits.compile_timeout,
                compile_memory_bytes: limits.compile_memory,
                ..LowerLimits::default()
            },
            ..RunRequest::default()
        };
        Ok(Asked { runtime, request, limits, bytes })
    }

    /// With all of its input, to which Piston adds the end of its last line.
    pub(super) fn with_input(mut self, service: &Service, caller: &Caller) -> Result<Asked, Refusal> {
        let Some(Bytes::Text(stdin)) = &mut self.request.stdin else { return Ok(self) };
        // What asks for an approval takes no input at all.
        if stdin.is_empty() && service.policy_for(caller, None)?.require_approval {
            self.request.stdin = None;
        } else if !stdin.ends_with('\n') {
            stdin.push('\n');
        }
        Ok(self)
    }

    /// With an input that is written while it goes: what came with the request is not read, as there.
    pub(super) fn with_live_input(mut self) -> Asked {
        self.request.stdin = None;
        self
    }

    /// Hands it over, as `change` leaves it.
    pub(super) fn submit(
        &self,
        service: &Arc<Service>,
        caller: &Caller,
        how: How,
        change: impl FnOnce(Job) -> Result<Job, Problem>,
    ) -> Result<Arc<Run>, Problem> {
        let mut job = change(job_of(service, caller, &self.request, self.bytes)?)?;
        job.limits.compile_cpu_ms = self.limits.compile_cpu;
        // There the program is where its files are, and may write there.
        job.request.at_work = true;
        let policy = job.policy.clone();
        service.submit(caller, job, how).map_err(|problem| {
            let is_of_limits = problem.field.as_ref().is_some_and(|field| field.starts_with("limits."));
            match self.limits.above(&policy) {
                Some(message) if is_of_limits && problem.failure_class == Some(FailureClass::PolicyViolation) => {
                    Problem { status: StatusCode::BAD_REQUEST, detail: message, ..problem }
                }
                _ => problem,
            }
        })
    }
}

fn text<'a>(body: &'a Value, field: &str) -> Result<&'a str, Refusal> {
    let given = body[field].as_str().filter(|text| !text.is_empty());
    given.ok_or_else(|| Refusal::bad(format!("{field} is required as a string")))
}

/// What a program is given as words: numbers are words too.
fn args(given: &Value) -> Result<Vec<String>, Refusal> {
    let bad = || Refusal::bad("args must be an array of strings");
    let word = |value: &Value| match value {
        Value::String(word) => Ok(word.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(bad()),
    };
    match given {
        Value::Null => Ok(vec![]),
        Value::Array(words) => words.iter().map(word).collect(),
        _ => Err(bad()),
    }
}

fn files(body: &Value) -> Result<Vec<File>, Refusal> {
    let given = body["files"].as_array().ok_or_else(|| Refusal::bad("files is required as an array"))?;
    let file = |(number, file): (usize, &Value)| {
        let bad = |what: &str| Refusal::bad(format!("files[{number}].{what}"));
        let content = file["content"].as_str().ok_or_else(|| bad("content is required as a string"))?;
        let name = match &file["name"] {
            Value::Null => None,
            Value::String(name) => Some(name).filter(|name| !name.is_empty()).map(|name| inside(name)).transpose()?,
            _ => return Err(bad("name must be a string")),
        };
        let (bytes, is_source) = match file["encoding"].as_str().unwrap_or_default() {
            "base64" => (base64(content), false),
            "hex" => (hex(content), false),
            encoding => (content.as_bytes().to_vec(), matches!(encoding, "" | "utf8")),
        };
        Ok(File { name, bytes, is_source })
    };
    given.iter().enumerate().map(file).collect()
}

/// A name as it is from where the program is: `./a` and `/a` are `a`, and nothing is above.
fn inside(name: &str) -> Result<String, Refusal> {
    let mut parts = vec![];
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => {
                let message = format!("File path \"{}\" tries to escape parent directory", shown(name));
                return Err(Refusal::bad(message));
            }
            ".." => {}
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// What is no base64 is passed over, as Node does.
fn base64(text: &str) -> Vec<u8> {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let digit = |c: char| match c {
        '-' => Some('+'),
        '_' => Some('/'),
        c => (c.is_ascii_alphanumeric() || matches!(c, '+' | '/')).then_some(c),
    };
    let mut digits: String = text.chars().take_while(|c| *c != '=').filter_map(digit).collect();
    if digits.len() % 4 == 1 {
        // Six bits are no byte.
        digits.pop();
    }
    GeneralPurpose::new(&ALPHABET, config).decode(digits).unwrap_or_default()
}

/// Up to the first that is none, as Node does.
fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    text.as_bytes().chunks(2).map_while(byte).collect()
}

/// Files by their names, and the one with which the program begins. Compilers go by names, which Piston's clients need not give.
fn named(language: &Language, files: Vec<File>, first: usize) -> Result<(String, BTreeMap<String, Bytes>), Refusal> {
    let is_compiled = language.ways.iter().any(|way| way.compile.is_some());
    let extension = language.extensions.first().map_or("txt", String::as_str);
    let names: Vec<Option<String>> = files.iter().map(|file| file.name.clone()).collect();
    let is_free = |name: &String| !names.contains(&Some(name.clone()));
    let mut entry = String::new();
    let mut all = BTreeMap::new();
    for (number, file) in files.into_iter().enumerate() {
        let is_known = |name: &String| {
            let given = Path::new(name).extension();
            language.extensions.iter().any(|known| given.is_some_and(|given| given == known.as_str()))
        };
        let name = match file.name {
            None if number == first => Some(language.name_for(&file.bytes)).filter(is_free),
            None if is_compiled && file.is_source => Some(format!("file{number}.{extension}")),
            None => None,
            // One that must have the name of what is in it has no other, whatever it was called.
            Some(name) if number == first && is_compiled && !language.names.is_empty() => {
                let right = Path::new(&name).with_file_name(language.name_for(&file.bytes));
                Some(right.to_string_lossy().into_owned()).filter(is_free).or(Some(name))
            }
            Some(name) if number == first && is_compiled && !is_known(&name) => {
                let right = Path::new(&name).with_extension(extension).to_string_lossy().into_owned();
                Some(Some(right).filter(is_free).unwrap_or_else(|| format!("{name}.{extension}")))
            }
            Some(name) => Some(name),
        };
        let name = name.unwrap_or_else(|| format!("file{number}.code"));
        if number == first {
            entry.clone_from(&name);
        }
        let bytes = match String::from_utf8(file.bytes) {
            Ok(text) => Bytes::Text(text),
            Err(other) => Bytes::Base64(Base64 { base64: STANDARD.encode(other.as_bytes()) }),
        };
        all.insert(name, bytes);
    }
    Ok((entry, all))
}

impl Limits {
    fn of(body: &Value) -> Result<Limits, Refusal> {
        Ok(Limits {
            compile_memory: limit(body, "compile_memory_limit")?,
            run_memory: limit(body, "run_memory_limit")?,
            compile_timeout: limit(body, "compile_timeout")?,
            run_timeout: limit(body, "run_timeout")?,
            compile_cpu: limit(body, "compile_cpu_time")?,
            run_cpu: limit(body, "run_cpu_time")?,
        })
    }

    /// Which of them is more than the policy gives, in Piston's order and words.
    fn above(&self, policy: &hotcell_contract::Policy) -> Option<String> {
        let run = limits_of(policy);
        let compile_wall_ms = (policy.compile.max_wall_time_seconds * 1000.0).round() as u64;
        let all = [
            ("compile_memory_limit", self.compile_memory, Some(policy.compile.max_memory_mb << 20)),
            ("run_memory_limit", self.run_memory, Some(run.memory_bytes)),
            ("compile_timeout", self.compile_timeout, Some(compile_wall_ms)),
            ("run_timeout", self.run_timeout, Some(run.wall_ms)),
            ("run_cpu_time", self.run_cpu, run.cpu_ms),
        ];
        all.into_iter().find_map(|(name, asked, most)| {
            let most = most.filter(|most| asked.is_some_and(|asked| asked > *most))?;
            Some(format!("{name} cannot exceed the configured limit of {most}"))
        })
    }
}

/// More than any policy allows, and no more than can be asked for at all: thirty days in milliseconds, half a pebibyte.
const MOST_TIME: u64 = 30 * 24 * 3600 * 1000;
const MOST_MEMORY: u64 = 1 << 49;

/// A number; nothing and -1 are the policy's.
fn limit(body: &Value, name: &str) -> Result<Option<u64>, Refusal> {
    let given = match &body[name] {
        Value::Null | Value::Bool(false) => return Ok(None),
        Value::String(text) if text.is_empty() => return Ok(None),
        Value::Number(number) => number.as_f64().unwrap_or_default(),
        _ => return Err(Refusal::bad(format!("If specified, {name} must be a number"))),
    };
    match given {
        0.0 | -1.0 => Ok(None),
        given if given < 0.0 => Err(Refusal::bad(format!("{name} must be non-negative"))),
        // What no policy allows is as much as any number that none allows.
        given => {
            Ok(Some((given.ceil() as u64).min(if name.ends_with("memory_limit") { MOST_MEMORY } else { MOST_TIME })))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_read_as_node_reads_them() {
        for (text, bytes) in [
            ("AP8=", &[0, 255][..]),
            ("AP8", &[0, 255]),
            ("A P\n8", &[0, 255]),
            ("-_-_", &[251, 255, 191]),
            ("A", &[]),
            ("AP8=AP8=", &[0, 255]),
        ] {
            assert_eq!(base64(text), bytes, "{text}");
        }
        for (text, bytes) in [("00ff", &[0, 255][..]), ("00fF1", &[0, 255]), ("00zz11", &[0]), ("zz", &[])] {
            assert_eq!(hex(text), bytes, "{text}");
        }
    }

    #[test]
    fn a_name_stays_inside() {
        for (name, right) in [("a.py", "a.py"), ("./a/../b.py", "b.py"), ("/a//b", "a/b")] {
            assert_eq!(inside(name).ok().as_deref(), Some(right), "{name}");
        }
        for name in ["..", "../a", "a/../../b"] {
            assert!(inside(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_source_gets_the_name_that_its_compiler_wants() {
        let catalogue = hotcell_engine::Catalogue::load(None).expect("it is built in");
        let called = |language: &str, names: &[Option<&str>]| {
            let language = catalogue.by_name(language).expect("it is known");
            let source = b"public class Right { }".to_vec();
            let file =
                |name: &Option<&str>| File { name: name.map(str::to_owned), bytes: source.clone(), is_source: true };
            let Ok((entry, all)) = named(language, names.iter().map(file).collect(), 0) else { panic!("{names:?}") };
            (entry, all.into_keys().collect::<Vec<String>>().join(" "))
        };
        for (language, names, entry, all) in [
            ("python", vec![None, None], "main.py", "file1.code main.py"),
            ("python", vec![Some("x"), None], "x", "file1.code x"),
            ("cpp", vec![None, None], "main.cpp", "file1.cpp main.cpp"),
            ("cpp", vec![Some("a/x.code"), Some("x.h")], "a/x.cpp", "a/x.cpp x.h"),
            ("cpp", vec![Some("x.cc")], "x.cc", "x.cc"),
            ("cpp", vec![Some("x.1"), Some("x.cpp")], "x.1.cpp", "x.1.cpp x.cpp"),
            ("java", vec![None], "Right.java", "Right.java"),
            ("java", vec![Some("src/main.java")], "src/Right.java", "src/Right.java"),
            ("java", vec![Some("Main.java"), Some("Right.java")], "Main.java", "Main.java Right.java"),
        ] {
            assert_eq!(called(language, &names), (entry.to_owned(), all.to_owned()), "{language} {names:?}");
        }
    }
}
