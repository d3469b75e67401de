//! Who the service is when root starts it, and where its state is then.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, lchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use hotcell_engine::service_id;

use crate::policy;
use crate::show::harmless;

/// Nobody but root may look into root's home.
const STATE_OF_ROOT: &str = "/var/lib/hotcell";

/// Where the state of a service is when nobody has said it.
pub(crate) fn state_dir(flag: Option<&Path>) -> anyhow::Result<PathBuf> {
    if is_roots_choice(flag) { Ok(STATE_OF_ROOT.into()) } else { usual(flag) }
}

/// What an operator's words are about that name no state. Root has one of its own runs and one of its service, and a kill switch
/// that is on in the wrong one would be no kill switch.
pub(crate) fn of_operator(flag: Option<&Path>) -> anyhow::Result<PathBuf> {
    let own = usual(flag)?;
    if !is_roots_choice(flag) || !Path::new(STATE_OF_ROOT).exists() {
        return Ok(own);
    }
    if own.exists() {
        let own = own.display();
        bail!(
            "there are two states, `{own}` of root's own runs and `{STATE_OF_ROOT}` of the service: name one with --state-dir"
        );
    }
    Ok(STATE_OF_ROOT.into())
}

fn usual(flag: Option<&Path>) -> anyhow::Result<PathBuf> {
    policy::state_dir(flag).context("there is no place for the state: give --state-dir, or set HOME")
}

fn is_roots_choice(flag: Option<&Path>) -> bool {
    let named = flag.is_some() || std::env::var_os("HOTCELL_STATE_DIR").is_some_and(|dir| !dir.is_empty());
    !named && rustix::process::geteuid().is_root()
}

/// Whom to become: nobody else when this is not root, or root was asked for. The state is given to them.
pub(crate) fn choose(flag: Option<&str>, state_dir: &Path) -> anyhow::Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return match flag {
            None => Ok(None),
            Some(name) => bail!("--user {} needs root: leave it out to serve as who you are", harmless(name)),
        };
    }
    let owner = owner(state_dir)?;
    let user = match (flag, owner) {
        (Some(name), _) => named(name)?,
        (None, Some(owner)) if owner.0 != 0 => without_roots_group(owner),
        (None, _) => (service_id(), service_id()),
    };
    if user.0 == 0 {
        return Ok(None);
    }
    let failed = || format!("cannot give `{}` to the user {}", state_dir.display(), user.0);
    match owner {
        None => {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir).with_context(failed)?;
            lchown(state_dir, Some(user.0), Some(user.1)).with_context(failed)?;
        }
        Some((0, _)) => hand_over(state_dir, user).with_context(failed)?,
        Some(owner) if owner.0 != user.0 => bail!(
            "`{}` belongs to the user {}, and the service is to be {}: give it to them, or give --state-dir another one",
            state_dir.display(),
            owner.0,
            user.0
        ),
        Some(_) => {}
    }
    Ok(Some(user))
}

/// Whom to become to work in a state that is there: a service that root has started is somebody else, and so is its state.
pub(crate) fn owner_instead_of_root(state_dir: &Path) -> anyhow::Result<Option<(u32, u32)>> {
    let is_root = rustix::process::geteuid().is_root();
    let others = owner(state_dir)?.filter(|(uid, _)| is_root && *uid != 0);
    Ok(others.map(without_roots_group))
}

/// For who has become that user: a state that is theirs is of no use behind a directory that is closed to them.
pub(crate) fn reach(state_dir: &Path, uid: u32) -> anyhow::Result<()> {
    let path = std::path::absolute(state_dir).with_context(|| format!("cannot look at `{}`", state_dir.display()))?;
    let is_closed = |dir: &Path| {
        std::fs::symlink_metadata(dir).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    let last = path.ancestors().take_while(|dir| is_closed(dir)).last();
    match last.and_then(Path::parent) {
        None => Ok(()),
        Some(closed) => bail!(
            "the user {uid} cannot reach `{}`, since `{}` is closed to them: `chmod o+x` or chown it, give --state-dir another one, or give `hotcell serve` another --user",
            state_dir.display(),
            closed.display()
        ),
    }
}

/// A directory of a user's may be in root's group; the user is not.
fn without_roots_group((uid, gid): (u32, u32)) -> (u32, u32) {
    (uid, if gid == 0 { uid } else { gid })
}

fn owner(dir: &Path) -> anyhow::Result<Option<(u32, u32)>> {
    match std::fs::symlink_metadata(dir) {
        Ok(meta) if meta.is_dir() => Ok(Some((meta.uid(), meta.gid()))),
        Ok(_) => bail!("`{}` is no directory: give --state-dir another one", dir.display()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot look at `{}`", dir.display())),
    }
}

/// A state that root has made, for keys or policies: nobody else has had a hand in it.
fn hand_over(dir: &Path, user: (u32, u32)) -> std::io::Result<()> {
    let meta = std::fs::symlink_metadata(dir)?;
    if meta.mode() & 0o022 != 0 {
        return Err(std::io::Error::other("it can be written by others"));
    }
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        match (meta.is_dir(), meta.uid()) {
            (_, owner) if owner == user.0 => {}
            // What somebody else may change while it is looked at is not looked at.
            (_, 1..) => return Err(std::io::Error::other(format!("`{}` is not root's", entry.path().display()))),
            (true, 0) => hand_over(&entry.path(), user)?,
            (false, 0) => lchown(entry.path(), Some(user.0), Some(user.1))?,
        }
    }
    lchown(dir, Some(user.0), Some(user.1))
}

/// By the user database, or by number.
fn named(name: &str) -> anyhow::Result<(u32, u32)> {
    if let Ok(id) = name.parse() {
        return Ok((id, id));
    }
    let known = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    let ids = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    ids.with_context(|| format!("--user {} is not in /etc/passwd: give a name that is, or a number", harmless(name)))
}
