//! Where traces go, by the variables that every program with OpenTelemetry reads.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Uri};
use serde_json::{Value, json};

use super::attribute;

const OTLP_PORT: u16 = 4318;
/// What the message is framed by.
const OURS: [&str; 5] = ["connection", "content-length", "content-type", "host", "transfer-encoding"];
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// A collector.
#[derive(Debug)]
pub struct Target {
    /// A name or an address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) path: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// For one batch.
    pub(super) time: Duration,
    pub(super) resource: Value,
    shown: String,
}

/// One sentence: what is wrong with which variable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is `{value}`, which {why}")]
pub struct BadTarget {
    variable: &'static str,
    value: String,
    why: &'static str,
}

impl Target {
    /// `None`: nobody wants any. `variable` is what one of them is set to.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Target>, BadTarget> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let either = |of_traces: &'static str, of_all: &'static str| {
            set(of_traces).map(|value| (of_traces, value)).or_else(|| set(of_all).map(|value| (of_all, value)))
        };
        let is_off = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        let endpoint = either("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
        let Some((name, url)) = endpoint.filter(|_| !is_off) else { return Ok(None) };
        if let Some((name, protocol)) = either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
            && protocol.starts_with("grpc")
        {
            return Err(bad(name, &protocol, "is not spoken here: use http/json, and the collector's port for HTTP"));
        }
        let (host, port, path) = place(name, &url)?;
        let path = match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => format!("{}/v1/traces", path.trim_end_matches('/')),
            _ => path,
        };
        let headers = either("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS");
        let time = either("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT");
        let attributes = set("OTEL_RESOURCE_ATTRIBUTES");
        let is_v6 = host.contains(':');
        let shown = if is_v6 { format!("http://[{host}]:{port}{path}") } else { format!("http://{host}:{port}{path}") };
        Ok(Some(Target {
            headers: headers.map_or(Ok(vec![]), |(name, list)| headers_of(name, &list))?,
            time: time.map_or(Ok(DEFAULT_TIME), |(name, ms)| milliseconds(name, &ms))?,
            resource: resource(set("OTEL_SERVICE_NAME"), attributes.as_deref())?,
            host,
            port,
            path,
            shown,
        }))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

fn bad(variable: &'static str, value: &str, why: &'static str) -> BadTarget {
    let value = value.chars().map(|c| if c.is_control() { '?' } else { c }).take(200).collect();
    BadTarget { variable, value, why }
}

fn place(name: &'static str, url: &str) -> Result<(String, u16, String), BadTarget> {
    let no_url = || bad(name, url, "is no address: give http://HOST:PORT");
    let uri: Uri = url.parse().map_err(|_| no_url())?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(bad(
                name,
                url,
                "would need TLS: give http:// of a collector on this machine, which passes it on",
            ));
        }
        _ => return Err(no_url()),
    }
    let authority = uri.authority().ok_or_else(no_url)?;
    if authority.as_str().contains('@') {
        return Err(bad(name, "...", "has a name or a word in it: give it in OTEL_EXPORTER_OTLP_HEADERS"));
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let host = host.strip_suffix('.').map(str::to_owned).unwrap_or(host);
    let port = match authority.as_str().get(authority.host().len()..).unwrap_or_default() {
        "" => OTLP_PORT,
        port => {
            port.strip_prefix(':').and_then(|port| port.parse().ok()).filter(|port| *port > 0).ok_or_else(no_url)?
        }
    };
    if host.is_empty() || uri.query().is_some() {
        return Err(no_url());
    }
    Ok((host, port, uri.path().to_owned()))
}

fn headers_of(name: &'static str, list: &str) -> Result<Vec<(HeaderName, HeaderValue)>, BadTarget> {
    // Its value is a secret, often.
    let wrong = || bad(name, "...", "is no list of headers: give NAME=VALUE,NAME=VALUE");
    pairs(list)
        .map(|pair| {
            let (key, value) = pair.ok_or_else(wrong)?;
            let value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
            let key = HeaderName::from_bytes(key.as_bytes()).map_err(|_| wrong())?;
            if OURS.contains(&key.as_str()) {
                return Err(bad(name, key.as_str(), "is a header that we send ourselves: leave it out"));
            }
            Ok((key, value))
        })
        .collect()
}

fn milliseconds(name: &'static str, ms: &str) -> Result<Duration, BadTarget> {
    let ms = ms
        .parse()
        .ok()
        .filter(|ms| (1..=600_000).contains(ms))
        .ok_or_else(|| bad(name, ms, "is no time: give milliseconds, at most 600000"))?;
    Ok(Duration::from_millis(ms))
}

/// Who tells: the service, in the operator's words.
fn resource(service: Option<String>, attributes: Option<&str>) -> Result<Value, BadTarget> {
    const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
    let wrong = || bad(NAME, attributes.unwrap_or_default(), "is no list of attributes: give NAME=VALUE,NAME=VALUE");
    let mut all = pairs(attributes.unwrap_or_default())
        .map(|pair| pair.ok_or_else(wrong))
        .collect::<Result<Vec<(String, String)>, BadTarget>>()?;
    let named = all.iter().position(|(key, _)| key == "service.name").map(|at| all.remove(at).1);
    let service = service.or(named).unwrap_or_else(|| "hotcell".into());
    let version = all.iter().any(|(key, _)| key == "service.version");
    let ours = [("service.name", service.as_str())].into_iter();
    let ours = ours.chain((!version).then_some(("service.version", env!("CARGO_PKG_VERSION"))));
    let theirs = all.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let attributes: Vec<Value> = ours.chain(theirs).map(|(key, value)| attribute(key, value)).collect();
    Ok(json!({ "attributes": attributes }))
}

/// `a=b,c=d`, with percent signs in the values, as in baggage.
fn pairs(list: &str) -> impl Iterator<Item = Option<(String, String)>> {
    list.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let key = Some(key.trim()).filter(|key| !key.is_empty())?;
        Some((key.to_owned(), decoded(value.trim())?))
    })
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |b: &u8| char::from(*b).to_digit(16);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                rest = after;
            }
            (b'%', _) => return None,
            (byte, after) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Result<Option<Target>, BadTarget> {
        Target::of(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_say_where() {
        let shown = |set: &[(&str, &str)]| of(set).expect("they are good").map(|target| target.to_string());
        let all = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let one = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let is = |set: &[(&str, &str)], what: &str| assert_eq!(shown(set).as_deref(), Some(what));
        assert_eq!(shown(&[]), None);
        assert_eq!(shown(&[(all, "")]), None);
        assert_eq!(shown(&[(all, "http://a"), ("OTEL_SDK_DISABLED", "true")]), None);
        assert_eq!(shown(&[(all, "http://a"), ("OTEL_TRACES_EXPORTER", "none")]), None);
        is(&[(all, "http://Collector")], "http://collector:4318/v1/traces");
        is(&[(all, "http://127.0.0.1:9/otlp/")], "http://127.0.0.1:9/otlp/v1/traces");
        is(&[(all, "http://[::1]:9")], "http://[::1]:9/v1/traces");
        is(&[(one, "http://a:9/own"), (all, "http://b")], "http://a:9/own");
    }

    #[test]
    fn what_cannot_be_used_is_refused_by_its_name() {
        let all = "OTEL_EXPORTER_OTLP_ENDPOINT";
        for (name, value) in [
            (all, "https://a"),
            (all, "a:4318"),
            (all, "http://user:word@a"),
            (all, "http://a/?b"),
            (all, "unix:/run/a"),
            (all, "http://a:99999"),
            (all, "http://a:0"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Content-Length=1"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "no-value"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0ac"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=%zz"),
        ] {
            let error = of(&[(name, value), (all, "http://a")]).expect_err(value).to_string();
            assert!(error.starts_with(name), "{error}");
            assert!(!error.contains("no-value") && !error.contains("word@"), "{error}");
        }
    }

    #[test]
    fn attributes_are_the_operators() {
        let target = of(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=x, deployment.environment=a%2Cb"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=se%20cret"),
        ]);
        let target = target.expect("they are good").expect("there is one");
        let resource = target.resource.to_string();
        assert!(resource.contains(r#""stringValue":"x""#) && resource.contains(r#""stringValue":"a,b""#), "{resource}");
        assert_eq!(target.headers[0].1, "se cret");
    }
}
