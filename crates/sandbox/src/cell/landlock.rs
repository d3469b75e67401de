//! Landlock: the same shape as the mounts, enforced by another part of the kernel.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};

use crate::Network;
use crate::wire::{Plan, TTY};

/// Read and execute everywhere, write in the scratch, no device but the five and its terminal, no abstract socket and no signal to
/// the outside. Rights newer than the kernel are left out by the crate; `Host` says which ABI there is.
pub(super) fn restrict(plan: &Plan) -> io::Result<()> {
    let abi = ABI::V6;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|r| r.scope(Scope::from_all(abi)))
        .map_err(io::Error::other)?;
    if plan.network == Network::None {
        rules = rules.handle_access(AccessNet::from_all(abi)).map_err(io::Error::other)?;
    }
    let allow = |path: &Path, access| -> io::Result<PathBeneath<PathFd>> {
        Ok(PathBeneath::new(PathFd::new(path).map_err(io::Error::other)?, access))
    };
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let scratch = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let mut granted = vec![allow(Path::new("/"), AccessFs::from_read(abi))?];
    for name in ["null", "zero", "full", "random", "urandom"] {
        granted.push(allow(&Path::new("/dev").join(name), device)?);
    }
    // By its inode, so by every name of it.
    if plan.terminal {
        granted.push(allow(Path::new(TTY), device | AccessFs::IoctlDev)?);
    }
    if plan.limits.scratch > 0 {
        for path in
            ["/work", "/tmp", "/dev/shm"].map(Path::new).into_iter().chain(plan.writable.iter().map(PathBuf::as_path))
        {
            granted.push(allow(path, scratch)?);
        }
    }
    rules
        .create()
        .and_then(|r| r.add_rules(granted.into_iter().map(Ok::<_, landlock::RulesetError>)))
        .and_then(|r| r.restrict_self())
        .map_err(io::Error::other)?;
    Ok(())
}
