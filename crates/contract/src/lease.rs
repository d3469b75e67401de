//! A lease: a signed, short-lived permission to run certain commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pattern::{REST, covers_path, covers_words};
use crate::policy::{Problem, quoted};
use crate::{AllowedHost, NAME, is_id, is_name};

/// On disk: RFC 8785 canonical JSON, and nothing else. The signature is over that without `sig` and `cosigners`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    pub lease_id: String,
    /// What it was issued for; null where no intent was asked for.
    pub intent_id: Option<String>,
    /// Who may use it.
    pub actor: String,
    /// RFC 3339, UTC.
    pub issued_at: String,
    pub expires_at: String,
    pub scope: Scope,
    pub limits: LeaseLimits,
    pub runner: Runner,
    /// A public key, in hex: whoever has the other half may hand on a smaller lease.
    pub holder_key: Option<String>,
    /// The lease that this one was made from, whole.
    pub parent: Option<Box<Lease>>,
    /// Signatures of others, over the lease with `sig` and without these.
    pub cosigners: Vec<Signed>,
    pub sig: Signed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// `Ed25519`
    pub alg: String,
    /// The first 16 digits of the SHA-256 of the public key.
    pub kid: String,
    /// 64 bytes, in hex.
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Words of a command; `*` is anything in a word, `**` as the last one any number of words.
    pub commands_allowlist: Vec<Vec<String>>,
    /// `repo://dir/*`; `*` stays inside one name, `**` does not. What matches is in the cell, and nothing else is.
    pub paths_allowlist: Vec<String>,
    /// Of those, what is not.
    pub paths_denylist: Vec<String>,
    /// Names of variables that may be given.
    pub env_allowlist: Vec<String>,
    pub network: LeaseNetwork,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseNetwork {
    DenyAll,
    /// `host:port`, each one of the policy's.
    Hosts(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseLimits {
    /// Processors.
    pub cpu_quota: f64,
    pub mem_quota_mb: u64,
    pub wallclock_timeout_s: u64,
    pub fd_limit: u64,
    pub max_runs: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    /// `/work`, or a directory of the repository: `repo://dir`.
    pub workdir: String,
    /// Directories of the host that the cell sees at their own place, besides what every cell sees.
    pub readonly_mounts: Vec<String>,
    /// Directories of the repository that may be changed: `repo://dir`.
    pub writable_mounts: Vec<String>,
}

/// Before every path of a repository.
pub const REPO: &str = "repo://";
/// How often a lease may have been handed on.
pub const MAX_CHAIN: usize = 8;
const MAX_LIST: usize = 1000;
const MAX_WORD: usize = 4096;

/// The path behind `repo://`: plain names, or wildcards where they are allowed.
pub fn repo_path(text: &str, wildcards: bool) -> Option<&str> {
    let path = text.strip_prefix(REPO)?;
    let plain = |name: &str| {
        !name.is_empty() && name != "." && name != ".." && (wildcards || !name.contains('*')) && !name.contains('\0')
    };
    (path.len() <= MAX_WORD && (path.is_empty() && !wildcards || path.split('/').all(plain))).then_some(path)
}

impl Lease {
    /// Everything that is wrong with its fields; signatures and times are looked at by who verifies.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = vec![];
        let mut bad = |field, given: String, allowed: &str| {
            found.push(Problem { field, given, allowed: allowed.to_owned() });
        };
        let ids = "give 1 to 64 letters, digits, `_` or `-`";
        if !is_id(&self.lease_id) {
            bad("lease_id", quoted(&self.lease_id), ids);
        }
        if let Some(id) = self.intent_id.as_ref().filter(|id| !is_id(id)) {
            bad("intent_id", quoted(id), ids);
        }
        if !is_name(&self.actor) {
            bad("actor", quoted(&self.actor), NAME);
        }
        if self.holder_key.as_ref().is_some_and(|key| !is_hex(key, 64)) {
            bad("holder_key", quoted(self.holder_key.as_deref().unwrap_or_default()), "give 64 hexadecimal digits");
        }
        let Scope { commands_allowlist, paths_allowlist, paths_denylist, env_allowlist, network } = &self.scope;
        if commands_allowlist.is_empty() || commands_allowlist.len() > MAX_LIST {
            bad("scope.commands_allowlist", format!("{} commands", commands_allowlist.len()), "give 1 to 1000");
        }
        for command in commands_allowlist {
            let rest_at = command.iter().position(|word| word == REST);
            if command.is_empty() || command.len() > MAX_LIST || rest_at.is_some_and(|at| at + 1 < command.len()) {
                let allowed = "give 1 to 1000 words, of which only the last may be `**`";
                bad("scope.commands_allowlist", quoted(&command.join(" ")), allowed);
            }
            if command.first().is_some_and(|word| word.contains('*')) {
                bad("scope.commands_allowlist", quoted(&command.join(" ")), "its first word may have no `*`");
            }
            if let Some(word) = command.iter().find(|word| word.len() > MAX_WORD || word.contains('\0')) {
                bad("scope.commands_allowlist", quoted(word), "give words of at most 4096 bytes, without NUL");
            }
        }
        for (field, list) in [("scope.paths_allowlist", paths_allowlist), ("scope.paths_denylist", paths_denylist)] {
            if list.len() > MAX_LIST {
                bad(field, format!("{} patterns", list.len()), "give 1000 at most");
            }
            if let Some(wrong) = list.iter().find(|path| repo_path(path, true).is_none()) {
                bad(field, quoted(wrong), "give repo://PATTERN, without `..`");
            }
        }
        if let Some(wrong) = env_allowlist.iter().find(|name| !is_variable(name)) {
            bad("scope.env_allowlist", quoted(wrong), "give names of letters, digits and `_`");
        }
        if let LeaseNetwork::Hosts(hosts) = network {
            for host in hosts {
                if let Err(why) = AllowedHost::parse(host) {
                    bad("scope.network", quoted(host), why);
                }
            }
        }
        let limits = &self.limits;
        if !(0.01..=4096.0).contains(&limits.cpu_quota) {
            bad("limits.cpu_quota", limits.cpu_quota.to_string(), "give 0.01 to 4096");
        }
        let mut whole = |field, value: u64, least: u64, most: u64| {
            if !(least..=most).contains(&value) {
                bad(field, value.to_string(), &format!("give {least} to {most}"));
            }
        };
        whole("limits.mem_quota_mb", limits.mem_quota_mb, 4, 1 << 29);
        whole("limits.wallclock_timeout_s", limits.wallclock_timeout_s, 1, 2_592_000);
        whole("limits.fd_limit", limits.fd_limit, 8, 1 << 20);
        whole("limits.max_runs", limits.max_runs, 1, 1_000_000);
        let Runner { workdir, readonly_mounts, writable_mounts } = &self.runner;
        if workdir != "/work" && repo_path(workdir, false).is_none() {
            bad("runner.workdir", quoted(workdir), "give /work or repo://DIR");
        }
        if let Some(wrong) = readonly_mounts.iter().find(|path| !is_host_directory(path)) {
            bad(
                "runner.readonly_mounts",
                quoted(wrong),
                "give absolute directories that are no place of the cell's own",
            );
        }
        for (n, path) in writable_mounts.iter().enumerate() {
            if writable_mounts[..n].iter().any(|other| is_inside(path, other) || is_inside(other, path)) {
                bad("runner.writable_mounts", quoted(path), "none of them may be inside another");
            }
            match repo_path(path, false).filter(|path| !path.is_empty()) {
                None => bad("runner.writable_mounts", quoted(path), "give repo://DIR"),
                Some(_) if !self.allows_path(&format!("{path}/**")) => {
                    bad(
                        "runner.writable_mounts",
                        quoted(path),
                        "all of it must be in paths_allowlist, as repo://DIR/**",
                    );
                }
                Some(_) => {}
            }
        }
        found
    }

    /// Whether every path of a pattern is allowed, without the denylist.
    fn allows_path(&self, pattern: &str) -> bool {
        self.scope.paths_allowlist.iter().any(|allowed| covers_path(allowed, pattern))
    }

    /// In which respects it is larger than the one it was made from; empty when it is a part of it.
    pub fn exceeds(&self, parent: &Lease) -> Vec<&'static str> {
        let (own, theirs) = (&self.scope, &parent.scope);
        let mut larger = vec![];
        let mut must = |is_part: bool, what| larger.extend((!is_part).then_some(what));
        must(self.intent_id == parent.intent_id, "intent_id");
        must(
            own.commands_allowlist.iter().all(|c| theirs.commands_allowlist.iter().any(|p| covers_words(p, c))),
            "scope.commands_allowlist",
        );
        must(own.paths_allowlist.iter().all(|path| parent.allows_path(path)), "scope.paths_allowlist");
        must(
            theirs.paths_denylist.iter().all(|path| own.paths_denylist.iter().any(|kept| covers_path(kept, path))),
            "scope.paths_denylist",
        );
        must(own.env_allowlist.iter().all(|name| theirs.env_allowlist.contains(name)), "scope.env_allowlist");
        let hosts = match (&own.network, &theirs.network) {
            (LeaseNetwork::DenyAll, _) => true,
            (LeaseNetwork::Hosts(_), LeaseNetwork::DenyAll) => false,
            (LeaseNetwork::Hosts(own), LeaseNetwork::Hosts(theirs)) => own.iter().all(|host| theirs.contains(host)),
        };
        must(hosts, "scope.network");
        let (own, theirs) = (&self.limits, &parent.limits);
        must(own.cpu_quota <= theirs.cpu_quota, "limits.cpu_quota");
        must(own.mem_quota_mb <= theirs.mem_quota_mb, "limits.mem_quota_mb");
        must(own.wallclock_timeout_s <= theirs.wallclock_timeout_s, "limits.wallclock_timeout_s");
        must(own.fd_limit <= theirs.fd_limit, "limits.fd_limit");
        must(own.max_runs <= theirs.max_runs, "limits.max_runs");
        let part = |own: &[String], theirs: &[String]| own.iter().all(|path| theirs.contains(path));
        must(part(&self.runner.readonly_mounts, &parent.runner.readonly_mounts), "runner.readonly_mounts");
        let writable = &parent.runner.writable_mounts;
        must(
            self.runner.writable_mounts.iter().all(|own| writable.iter().any(|dir| is_inside(own, dir))),
            "runner.writable_mounts",
        );
        larger
    }

    /// Whether it allows just what its parent does, for as long.
    pub fn is_as_large_as(&self, parent: &Lease) -> bool {
        self.expires_at == parent.expires_at && parent.exceeds(self).is_empty()
    }

    /// This lease, its parent, and so on.
    pub fn chain(&self) -> impl Iterator<Item = &Lease> {
        std::iter::successors(Some(self), |lease| lease.parent.as_deref())
    }
}

fn is_inside(path: &str, dir: &str) -> bool {
    path == dir || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

pub fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_variable(name: &str) -> bool {
    (1..=256).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Nothing that a cell makes itself, and nothing that speaks for the host.
fn is_host_directory(path: &str) -> bool {
    const OWN: [&str; 11] = ["proc", "sys", "dev", "run", "etc", "src", "work", "tmp", "var", "boot", "build"];
    let mut names = path.strip_prefix('/').unwrap_or_default().split('/');
    let first = names.next().unwrap_or_default();
    path.starts_with('/')
        && path.len() <= MAX_WORD
        && !OWN.contains(&first)
        && path[1..].split('/').all(|name| !name.is_empty() && name != "." && name != ".." && !name.contains('\0'))
}
