//! What a run is permitted by: the operator's switches, and a lease.

use std::path::PathBuf;

use hotcell_contract::{Capabilities, Policy};
use hotcell_engine::{Application, AskedLimits, Given, Leased, Request, Verb, admit, capabilities, open_regular};

use crate::args::cell::CellArgs;
use crate::policy::state_dir;
use crate::state;

/// A lease is a page.
const MAX_LEASE: u64 = 1 << 20;

/// What the operator has enabled, wherever that is written.
pub(crate) fn switches(flag: Option<&std::path::Path>) -> anyhow::Result<Capabilities> {
    Ok(capabilities(state_dir(flag).as_deref(), config_dir().as_deref())?)
}

/// Where the operator's own files are that are no state.
pub(crate) fn config_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    home.map(|dir| dir.join("hotcell"))
}

/// What a file says that may be a lease. What is longer than any is cut, and malformed then.
pub(crate) fn read(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![];
    std::io::Read::read_to_end(&mut std::io::Read::take(open_regular(path)?, MAX_LEASE), &mut bytes)?;
    Ok(bytes)
}

/// Whether the request may go on, and under which lease. A refusal is written down where there is a place for it.
pub(crate) fn admit_run(
    args: &CellArgs,
    verb: Verb,
    policy: Option<&Policy>,
    limits: &AskedLimits,
    request: &mut Request,
) -> anyhow::Result<Option<Leased>> {
    let capabilities = switches(args.state_dir.as_deref())?;
    let who = state::who(args)?;
    let name = args.lease.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let given = |path: &PathBuf| Given { name: &name, bytes: read(path), repository: args.repo.as_deref() };
    let lease = args.lease.as_ref().map(given);
    let asked = Application { verb, who: &who, policy, limits, capabilities: &capabilities, lease };
    admit(asked, request, || state::of_run(args))
}
