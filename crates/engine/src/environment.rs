//! The variables of a program.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use hotcell_contract::AllowedHost;
use hotcell_sandbox as sandbox;

use crate::plan::PlanError;

pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What every program starts with; the request adds to it and may replace it.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("PATH", PATH),
    ("HOME", "/work"),
    ("TMPDIR", "/tmp"),
    ("USER", "cell"),
    ("LOGNAME", "cell"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    // A read-only tree full of modules is no place for caches.
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

pub(crate) fn environment(asked: &[(OsString, OsString)]) -> Result<Vec<(OsString, OsString)>, PlanError> {
    let mut env: Vec<(OsString, OsString)> = ENVIRONMENT.iter().map(|(k, v)| (k.into(), v.into())).collect();
    for (key, value) in asked {
        let bad = key.is_empty() || key.as_bytes().iter().any(|b| matches!(b, b'=' | 0));
        if bad || value.as_bytes().contains(&0) {
            return Err(PlanError::BadEnvironment(key.to_string_lossy().into_owned()));
        }
        env.retain(|(k, _)| k != key);
        env.push((key.clone(), value.clone()));
    }
    Ok(env)
}

/// How a program finds its broker. What it serves to itself it reaches without, unless the name is one of the host's.
pub(crate) fn proxy_variables(hosts: &[AllowedHost]) -> Vec<(OsString, OsString)> {
    let broker = format!("http://127.0.0.1:{}", sandbox::BROKER_PORT);
    let own = [("localhost", "localhost"), ("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")];
    let own = own.into_iter().filter(|(shown, _)| !hosts.iter().any(|allowed| allowed.host.to_string() == *shown));
    let own: Vec<&str> = own.map(|(_, word)| word).collect();
    let values = [("http_proxy", broker.clone()), ("https_proxy", broker), ("no_proxy", own.join(","))];
    let both = |(name, value): (&str, String)| {
        [(name.into(), value.clone().into()), (name.to_ascii_uppercase().into(), value.into())]
    };
    values.into_iter().flat_map(both).collect()
}
