//! What is asked of the engine, already understood: no text of a user's is parsed here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use hotcell_contract::{AllowedHost, Limits, Mode, NetworkPolicy, OnViolation, Policy};
use hotcell_languages::Language;

use crate::backend::Container;
use crate::lease::Granted;

/// One program to run.
#[derive(Clone, Debug)]
pub struct Request {
    pub request_id: Option<String>,
    /// What its record is to be called, where that was said before it could begin.
    pub record_id: Option<String>,
    pub mode: Mode,
    pub program: Program,
    /// A directory that the cell sees at /src.
    pub input: Option<PathBuf>,
    pub env: Vec<(OsString, OsString)>,
    pub limits: Limits,
    /// Of the compiler, where there is one.
    pub compile: Limits,
    /// Sources that are given are in the working directory too, where the program may change them.
    pub at_work: bool,
    /// Where compiled programs are kept; `None` keeps none.
    pub cache: Option<PathBuf>,
    /// Which of the files that the program leaves are artifacts; all, when empty.
    pub collect: Vec<String>,
    /// Python under restricted builtins, as one more layer.
    pub capsule: Option<Capsule>,
    pub network: NetworkPolicy,
    /// For `restricted`: who may be reached.
    pub allowed_hosts: Vec<AllowedHost>,
    pub on_violation: OnViolation,
    /// Layers without which not to run: `cgroup`, `landlock`.
    pub require: Vec<String>,
    /// The policy under which all of this was settled.
    pub policy: Option<Policy>,
    /// What a lease gives to the program.
    pub granted: Granted,
    /// Who makes the cell, when it is not this program.
    pub container: Option<Container>,
    /// What the caller says of it.
    pub metadata: BTreeMap<String, String>,
    /// How the caller calls the files of the program, where they are files; for triggers alone.
    pub paths: Vec<PathBuf>,
    /// What of the policy has raised it to a kernel of its own.
    pub raised_by: Option<String>,
}

impl Request {
    /// A program in a cell as it is by default, given nothing else.
    pub fn of(program: Program) -> Request {
        Request {
            request_id: None,
            record_id: None,
            mode: Mode::Balanced,
            program,
            input: None,
            env: vec![],
            limits: default_limits(),
            compile: compile_limits(),
            at_work: false,
            cache: None,
            collect: vec![],
            capsule: None,
            network: NetworkPolicy::None,
            allowed_hosts: vec![],
            on_violation: OnViolation::Fail,
            require: vec![],
            policy: None,
            granted: Granted::default(),
            container: None,
            metadata: BTreeMap::new(),
            paths: vec![],
            raised_by: None,
        }
    }
}

/// What a capsule is given besides its code: its configuration are the variables of the request.
#[derive(Clone, Debug, Default)]
pub struct Capsule {
    /// A JSON object; `ctx.read_state` answers from it.
    pub state: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub enum Program {
    Command(Vec<OsString>),
    Source { language: Box<Language>, source: Source, args: Vec<OsString> },
}

#[derive(Clone, Debug)]
pub enum Source {
    /// Written into the cell: names and contents. The program begins with the first.
    Given { files: Vec<(String, Vec<u8>)> },
    /// The input directory, and the file in it, relative, with which the program begins.
    InInput { entry: Option<PathBuf> },
}

/// The limits of `balanced`: 45 s, 2 processors, 1 GiB, 256 processes, 10 MiB of output, 512 MiB of scratch.
pub(crate) fn default_limits() -> Limits {
    Limits {
        wall_ms: 45_000,
        grace_ms: 500,
        cpu_ms: None,
        cpus: 2.0,
        memory_bytes: 1024 << 20,
        processes: 256,
        open_files: 1024,
        file_size_bytes: 513 << 20,
        scratch_bytes: 512 << 20,
        scratch_inodes: 65_536,
        output_bytes: 10 << 20,
    }
}

/// Compilers take more than what they make: two minutes, 2 GiB, and a scratch for everything between.
pub fn compile_limits() -> Limits {
    Limits {
        wall_ms: 120_000,
        memory_bytes: 2048 << 20,
        processes: 512,
        open_files: 4096,
        file_size_bytes: 1024 << 20,
        scratch_bytes: 2048 << 20,
        scratch_inodes: 262_144,
        ..default_limits()
    }
}

/// An id that nobody has had: newer ones sort behind older ones.
pub fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
