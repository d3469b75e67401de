//! Who asks, and what he may do.
//!
//! As long as there is no key at all, everybody on this machine's loopback is the operator. A page in a browser on this
//! machine is there too: so then only requests for a loopback name are served, which a page cannot send after its own name was
//! made to point here, and none that come from a page at all.

use axum::http::{HeaderMap, StatusCode, header};
use hotcell_contract::KeyScope;

use crate::problem::Problem;
use crate::service::Service;
use crate::trace::Parent;

/// The tenant of everybody, as long as there are no keys.
const NOBODY: &str = "default";
/// Ours have 80.
const MAX_TOKEN: usize = 256;

#[derive(Clone, Debug)]
pub struct Caller {
    pub tenant: String,
    scopes: Vec<KeyScope>,
    /// `None`: all that there are.
    pub policies: Option<Vec<String>>,
    pub key_id: Option<String>,
    /// In which trace of his own he asks.
    pub(crate) parent: Option<Parent>,
}

impl Caller {
    /// The operator himself, on his own machine.
    pub fn operator() -> Caller {
        Caller { tenant: NOBODY.into(), scopes: vec![KeyScope::Admin], policies: None, key_id: None, parent: None }
    }

    /// Whoever has started us for himself alone: what he runs is under the policy that he was given.
    pub fn of_tenant(tenant: String) -> Caller {
        Caller {
            tenant,
            scopes: vec![KeyScope::Run, KeyScope::Read],
            policies: Some(vec![]),
            key_id: None,
            parent: None,
        }
    }

    /// Nobody was asked who he is.
    pub(crate) fn is_anybody(&self) -> bool {
        self.key_id.is_none() && self.policies.is_none()
    }

    pub fn may(&self, scope: KeyScope) -> Result<(), Problem> {
        if self.has(scope) {
            return Ok(());
        }
        let detail = format!("this key is not for that: it needs the scope `{}`", scope.name());
        Err(Problem::new(StatusCode::FORBIDDEN, "scope", detail))
    }

    pub fn has(&self, scope: KeyScope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&KeyScope::Admin)
    }

    /// Who did it, for the audit log.
    pub fn name(&self) -> String {
        self.key_id.as_ref().map_or_else(|| "the operator".into(), |id| format!("key {id} of {}", self.tenant))
    }
}

pub(crate) fn caller(service: &Service, headers: &HeaderMap) -> Result<Caller, Problem> {
    caller_with(service, headers, token(headers, bearer)?)
}

/// The same for clients that send nothing but the key as `Authorization`.
pub(crate) fn caller_with_bare_key(service: &Service, headers: &HeaderMap) -> Result<Caller, Problem> {
    caller_with(service, headers, token(headers, bare)?)
}

fn caller_with(service: &Service, headers: &HeaderMap, token: Option<&str>) -> Result<Caller, Problem> {
    let found = token.map(|token| service.keys().key_of_token(token)).transpose()?;
    match found {
        Some(Some(key)) => Ok(Caller {
            tenant: key.tenant_id,
            scopes: key.scopes,
            policies: Some(key.policies),
            key_id: Some(key.key_id),
            parent: Parent::of(headers),
        }),
        // Also where there are no keys: whoever shows one does not mean nobody.
        Some(None) => Err(Problem::new(StatusCode::UNAUTHORIZED, "key", "this key is not known here, or was revoked")),
        None if !service.is_local() || service.has_keys()? => {
            let detail = "a key is needed: send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`";
            Err(Problem::new(StatusCode::UNAUTHORIZED, "key", detail))
        }
        None => {
            is_no_page(headers)?;
            Ok(Caller { parent: Parent::of(headers), ..Caller::operator() })
        }
    }
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case("bearer ").then_some(token)
}

fn bare(text: &str) -> Option<&str> {
    bearer(text).or_else(|| Some(text).filter(|text| !text.contains(' ')))
}

/// What of a header is the token, if it has one.
type Way = fn(&str) -> Option<&str>;

/// The token of one header; two that differ are a mistake or a trick.
fn token(headers: &HeaderMap, of_authorization: Way) -> Result<Option<&str>, Problem> {
    let bad = |why: &str| Problem::new(StatusCode::UNAUTHORIZED, "key", format!("the key cannot be read: {why}"));
    let mut found = None;
    let ways: [(&str, Way); 2] = [(header::AUTHORIZATION.as_str(), of_authorization), ("x-api-key", |text| Some(text))];
    for (name, of) in ways {
        for value in headers.get_all(name) {
            let text = value.to_str().map_err(|_| bad("it has bytes that no key has"))?;
            let token = of(text).ok_or_else(|| bad("send it as `Authorization: Bearer KEY`"))?.trim();
            if token.len() > MAX_TOKEN {
                return Err(bad("it is too long"));
            }
            if found.is_some_and(|before| before != token) {
                return Err(bad("there are two: send one"));
            }
            found = Some(token);
        }
    }
    Ok(found)
}

fn is_no_page(headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, "browser", detail));
    if headers.contains_key(header::ORIGIN) {
        return refused("pages are not served as long as there are no keys: `hotcell keys create` makes one");
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_loopback(host) {
        return refused("as long as there are no keys, only localhost, 127.0.0.1 and [::1] are served");
    }
    Ok(())
}

/// With or without a port.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || matches!(name, "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_names_that_are_this_machine_everywhere_are_loopback() {
        for good in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8700", "[::1]", "[::1]:8700"] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example:8700",
            "::1",
            "localhost:",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }
}
