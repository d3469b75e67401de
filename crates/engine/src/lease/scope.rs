//! What a lease allows of a request, and what it gives to it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotcell_contract::{
    AllowedHost, Lease, LeaseNetwork, NetworkPolicy, matches_or_holds, matches_path, matches_words, repo_path,
    show_duration, show_size,
};
use jiff::Timestamp;

use super::LeaseRefusal;
use super::verify::at;
use crate::policy::AskedLimits;
use crate::repo::{Repository, Selection, select};
use crate::request::{Program, Request, Source};

/// Where a cell sees the repository.
pub(crate) const REPO_AT: &str = "/repo";

/// The first word of a source that is run, which no command can have.
const RUN: &str = "hotcell run";

/// A lease that was verified, and the repository that it is used on.
#[derive(Debug)]
pub struct Leased {
    pub lease: Lease,
    expires: Timestamp,
    pub(crate) repository: Option<Repository>,
}

/// What a lease gives to a program.
#[derive(Clone, Debug, Default)]
pub struct Granted {
    /// Of a repository, at /repo.
    pub(crate) shown: Option<Shown>,
    /// Directories of the host that the cell sees at their own place.
    pub(crate) mounts: Vec<PathBuf>,
    /// Where the program starts; /work, where nothing else is said.
    pub(crate) workdir: Option<PathBuf>,
    /// When everything must be over.
    expires: Option<Timestamp>,
    pub(crate) lease_id: Option<String>,
}

impl Granted {
    /// The time that a cell may take which begins now.
    pub(crate) fn at_most(&self, wall: Duration) -> Duration {
        let Some(expires) = self.expires else { return wall };
        let left = expires.as_millisecond() - Timestamp::now().as_millisecond();
        // A cell without any time is one that is killed at once, and says why.
        wall.min(Duration::from_millis(u64::try_from(left).unwrap_or(0).max(1)))
    }

    /// Whether the program sees anything of the host's that nobody has looked at before.
    pub(crate) fn shows_something(&self) -> bool {
        self.shown.is_some() || !self.mounts.is_empty()
    }
}

/// What the cell sees of a repository.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) root: PathBuf,
    pub(crate) selection: Arc<Selection>,
}

impl Leased {
    pub fn new(lease: Lease, repository: Option<&Path>) -> Result<Leased, LeaseRefusal> {
        let expires = lease.chain().map(|lease| at(&lease.expires_at)).collect::<Result<Vec<_>, _>>()?;
        let expires = expires.into_iter().min().unwrap_or(Timestamp::UNIX_EPOCH);
        let open = |path: &Path| {
            Repository::open(path).map_err(|e: io::Error| LeaseRefusal::Path {
                path: path.display().to_string(),
                why: format!("it is no repository that can be read: {e}"),
            })
        };
        Ok(Leased { lease, expires, repository: repository.map(open).transpose()? })
    }

    /// Our own keys are in the state directory: it is never a part of what a cell sees.
    pub(crate) fn keeps_out(&self, state: &Path) -> Result<(), LeaseRefusal> {
        let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        let mounts = self.lease.runner.readonly_mounts.iter().map(Path::new);
        let shown = self.repository.iter().map(|repo| repo.root.as_path()).chain(mounts);
        match shown.into_iter().find(|dir| state.starts_with(dir) || dir.starts_with(&state)) {
            Some(dir) => {
                let why = "the state directory is in it, or it is in the state directory: use another place".into();
                Err(LeaseRefusal::Path { path: dir.display().to_string(), why })
            }
            None => Ok(()),
        }
    }

    /// Whether it has expired by now.
    pub(crate) fn is_over(&self) -> bool {
        Timestamp::now() >= self.expires
    }

    /// Makes of a settled request what the lease allows of it, or says what it does not.
    pub fn apply(&self, asked: &AskedLimits, request: &mut Request) -> Result<(), LeaseRefusal> {
        self.admit_command(&request.program)?;
        // A file of the caller's own would say what a command does and what of the host it sees.
        if let Program::Source { language, .. } = &request.program
            && language.own_text.is_some()
        {
            return Err(LeaseRefusal::Command(format!("{}, by a language file of your own", language.name)));
        }
        // So would an image: a command is what it finds there. And a runtime is a program outside of any cell.
        if asked.backend.is_of_the_callers_own() {
            return Err(LeaseRefusal::Command("in an image or by a runtime of your own".into()));
        }
        for (name, _) in &request.env {
            let name = name.to_string_lossy();
            if !self.lease.scope.env_allowlist.iter().any(|allowed| *allowed == name) {
                return Err(LeaseRefusal::Environment(name.into_owned()));
            }
        }
        if let Some(input) = &request.input {
            let why = "under a lease, what the cell sees is what the lease says: give --repo".to_owned();
            return Err(LeaseRefusal::Path { path: input.display().to_string(), why });
        }
        self.connect(asked, request)?;
        self.lower(asked, request)?;
        self.show(request)
    }

    fn admit_command(&self, program: &Program) -> Result<(), LeaseRefusal> {
        let argv = argv(program);
        let shown = argv.iter().map(|word| word.as_deref().unwrap_or("?")).collect::<Vec<_>>().join(" ");
        // A word that is no text is matched by nothing.
        let argv: Option<Vec<String>> = argv.into_iter().collect();
        let allowed = argv.is_some_and(|argv| {
            self.lease.scope.commands_allowlist.iter().any(|pattern| matches_words(pattern, &argv))
        });
        if allowed {
            Ok(())
        } else {
            Err(LeaseRefusal::Command(shown.chars().flat_map(char::escape_debug).take(200).collect()))
        }
    }

    /// The hosts of the lease, which the policy must allow as well; what was asked for may be less.
    fn connect(&self, asked: &AskedLimits, request: &mut Request) -> Result<(), LeaseRefusal> {
        let own: Vec<AllowedHost> = match &self.lease.scope.network {
            LeaseNetwork::DenyAll if asked.network.is_none_or(|network| network == NetworkPolicy::None) => {
                (request.network, request.allowed_hosts) = (NetworkPolicy::None, vec![]);
                return Ok(());
            }
            LeaseNetwork::DenyAll => return Err(LeaseRefusal::Network("it denies all".into())),
            LeaseNetwork::Hosts(hosts) => hosts.iter().filter_map(|host| AllowedHost::parse(host).ok()).collect(),
        };
        let outside = |hosts: &[AllowedHost], among: &[AllowedHost], whose: &str| {
            let other = hosts.iter().find(|host| !among.iter().any(|known| known.covers(host)));
            other.map_or(Ok(()), |other| {
                Err(LeaseRefusal::Network(format!("{other} is not one of the {whose}'s hosts")))
            })
        };
        match (request.network, request.policy.is_some()) {
            (NetworkPolicy::Restricted, _) if !asked.allowed_hosts.is_empty() => {
                return outside(&asked.allowed_hosts, &own, "lease");
            }
            (NetworkPolicy::Restricted, _) => outside(&own, &request.allowed_hosts, "policy")?,
            (NetworkPolicy::Full, _) if asked.network == Some(NetworkPolicy::Full) => {
                return Err(LeaseRefusal::Network("it has some hosts, not all".into()));
            }
            (NetworkPolicy::None | NetworkPolicy::Local, _) if asked.network.is_some() => return Ok(()),
            (NetworkPolicy::None | NetworkPolicy::Local, true) => outside(&own, &[], "policy")?,
            // Without a policy the caller is the operator.
            (NetworkPolicy::Full, _) | (_, false) => {}
        }
        (request.network, request.allowed_hosts) = (NetworkPolicy::Restricted, own);
        Ok(())
    }

    fn lower(&self, asked: &AskedLimits, request: &mut Request) -> Result<(), LeaseRefusal> {
        let own = &self.lease.limits;
        let is_alone = request.policy.is_none();
        let in_ms = |ms: u64| show_duration(Duration::from_millis(ms));
        let lower = |what, slot: &mut u64, asked: Option<u64>, most: u64, show: fn(u64) -> String| match asked {
            Some(asked) if asked > most => Err(LeaseRefusal::Limit { what, given: show(asked), most: show(most) }),
            _ => {
                // Without a policy the lease is what gives; under one, and where less was asked for, it only takes.
                *slot = if is_alone && asked.is_none() { most } else { (*slot).min(most) };
                Ok(())
            }
        };
        let limits = &mut request.limits;
        lower("--timeout", &mut limits.wall_ms, asked.wall_ms, own.wallclock_timeout_s * 1000, in_ms)?;
        lower("--memory", &mut limits.memory_bytes, asked.memory_bytes, own.mem_quota_mb << 20, show_size)?;
        lower("--open-files", &mut limits.open_files, asked.open_files, own.fd_limit, |n| n.to_string())?;
        if let Some(cpus) = asked.cpus.filter(|cpus| *cpus > own.cpu_quota) {
            let (given, most) = (cpus.to_string(), own.cpu_quota.to_string());
            return Err(LeaseRefusal::Limit { what: "--cpus", given, most });
        }
        limits.cpus = if is_alone && asked.cpus.is_none() { own.cpu_quota } else { limits.cpus.min(own.cpu_quota) };
        let compile = &mut request.compile;
        compile.memory_bytes = compile.memory_bytes.min(own.mem_quota_mb << 20);
        compile.cpus = compile.cpus.min(own.cpu_quota);
        request.granted.expires = Some(self.expires);
        request.granted.lease_id = Some(self.lease.lease_id.clone());
        match self.is_over() {
            true => Err(LeaseRefusal::Expired(self.expires.to_string())),
            false => Ok(()),
        }
    }

    /// The repository, the mounts and the working directory.
    fn show(&self, request: &mut Request) -> Result<(), LeaseRefusal> {
        let (scope, runner) = (&self.lease.scope, &self.lease.runner);
        let paths = |list: &[String], wildcards| -> Vec<String> {
            list.iter().filter_map(|text| repo_path(text, wildcards).map(str::to_owned)).collect()
        };
        let (allow, deny) = (paths(&scope.paths_allowlist, true), paths(&scope.paths_denylist, true));
        let writable = paths(&runner.writable_mounts, false);
        let named = allow.first().map(|path| format!("repo://{path}"));
        let named = named.or_else(|| Some(runner.workdir.clone()).filter(|dir| dir.starts_with("repo://")));
        match (&self.repository, named) {
            (None, Some(path)) => {
                return Err(LeaseRefusal::Path { path, why: "no repository was given: use --repo DIR".into() });
            }
            // Nothing of it is shown.
            (_, None) => {}
            (Some(repo), Some(_)) => {
                fn borrowed(list: &[String]) -> Vec<&str> {
                    list.iter().map(String::as_str).collect()
                }
                let selection = select(repo, &borrowed(&allow), &borrowed(&deny), &borrowed(&writable))?;
                request.granted.shown = Some(Shown { root: repo.root.clone(), selection: Arc::new(selection) });
            }
        }
        for mount in &runner.readonly_mounts {
            let why = match Path::new(mount).canonicalize() {
                Ok(real) if real == Path::new(mount) => continue,
                Ok(_) => "a link is in it".into(),
                Err(e) => e.to_string(),
            };
            return Err(LeaseRefusal::Path { path: mount.clone(), why });
        }
        request.granted.mounts = runner.readonly_mounts.iter().map(PathBuf::from).collect();
        if let Some(dir) = repo_path(&runner.workdir, false) {
            request.granted.workdir = Some(Path::new(REPO_AT).join(dir));
        }
        Ok(())
    }

    pub(crate) fn denies(&self, path: &str) -> bool {
        let by = |list: &[String], matches: fn(&str, &str) -> bool| {
            list.iter().filter_map(|text| repo_path(text, true)).any(|pattern| matches(pattern, path))
        };
        by(&self.lease.scope.paths_denylist, matches_or_holds) || !by(&self.lease.scope.paths_allowlist, matches_path)
    }
}

/// What a program is called in a lease; `None` for a word that is no text.
fn argv(program: &Program) -> Vec<Option<String>> {
    let text = |word: &std::ffi::OsString| word.to_str().map(str::to_owned);
    match program {
        Program::Command(argv) => argv.iter().map(text).collect(),
        Program::Source { language, source, args } => {
            let name = match source {
                Source::Given { files } => files.first().map(|(name, _)| name.clone()),
                Source::InInput { entry } => entry.as_ref().and_then(|entry| entry.to_str().map(str::to_owned)),
            };
            let words = [Some(RUN.to_owned()), Some(language.name.clone()), Some(name.unwrap_or_default())];
            words.into_iter().chain(args.iter().map(text)).collect()
        }
    }
}
