//! The head of a request to a proxy, read strictly: what two readers could understand differently is refused.

use hotcell_contract::{Host, HostPort, parse_port};

use super::body::{Body, Chunks};

pub(super) const MOST_BYTES: usize = 16 * 1024;
const MOST_FIELDS: usize = 100;
const MOST_HOST: usize = 260;
const MOST_SHOWN: usize = 80;
const NOT_ASCII: &str = "the first line is not ASCII";

/// Where a request is to go, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) shown: String,
    /// `None`: what could be read is no host.
    pub(super) place: Option<HostPort>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) target: Target,
    /// What the host gets first: nothing through a tunnel.
    pub(super) head: Vec<u8>,
    pub(super) body: Body,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Known when the first line was in order.
    pub(super) target: Option<Target>,
    pub(super) why: &'static str,
}

/// Where the head ends: behind an empty line, or where it can't be one any more.
pub(super) fn end(bytes: &[u8]) -> Option<usize> {
    let mut previous = [0u8; 3];
    for (at, byte) in bytes.iter().enumerate() {
        let bare = *byte == b'\n' && previous[2] != b'\r';
        if bare || *byte == 0 || (previous == *b"\r\n\r" && *byte == b'\n') {
            return Some(at + 1);
        }
        previous = [previous[1], previous[2], *byte];
    }
    None
}

/// The target of a head that is not complete, when its first line is.
pub(super) fn target(part: &[u8]) -> Option<Result<Target, Malformed>> {
    let line = part.windows(2).position(|pair| pair == b"\r\n").and_then(|at| part.get(..at))?;
    let first = std::str::from_utf8(line).map_err(|_| NOT_ASCII).and_then(first_line);
    Some(first.map(|first| first.target).map_err(|why| Malformed { target: None, why }))
}

/// Whom a head that is malformed is likely to mean: for the record, and never to be reached.
pub(super) fn guess(head: &[u8]) -> Option<Target> {
    let line = head.split(|b| matches!(b, b'\r' | b'\n' | 0)).next()?;
    let target = std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(1)?;
    let (scheme, rest) = target.split_once("://").unwrap_or(("", target));
    let named = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let named = named.rsplit_once('@').map_or(named, |(_, host)| host);
    let known = [("http", 80), ("ws", 80), ("https", 443), ("wss", 443), ("ftp", 21)];
    let port = known.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name)).map(|(_, port)| *port);
    authority(named, port).or_else(|| {
        // A port that is none, or is missing.
        let plain = !named.is_empty() && named.len() <= MOST_HOST && named.bytes().all(is_of_host);
        plain.then(|| Target { shown: named.to_owned(), place: None })
    })
}

/// What a head begins with, in letters that can be printed.
pub(super) fn beginning(head: &[u8]) -> String {
    let line = head.split(|b| matches!(b, b'\r' | b'\n')).next().unwrap_or_default();
    match line.get(..MOST_SHOWN) {
        Some(part) => format!("{}...", part.escape_ascii()),
        None => line.escape_ascii().to_string(),
    }
}

/// A whole head, with its empty line.
pub(super) fn parse(head: &[u8]) -> Result<Request, Malformed> {
    let nowhere = |why| Malformed { target: None, why };
    let head = head.strip_suffix(b"\r\n\r\n").ok_or(nowhere("the head has a line that does not end in CR LF"))?;
    let mut lines = split(head);
    let line = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let first = first_line(line.ok_or(nowhere(NOT_ASCII))?).map_err(nowhere)?;
    let target = first.target.clone();
    let bad = |why| Malformed { target: Some(target.clone()), why };
    let fields = lines.map(field).collect::<Option<Vec<_>>>().ok_or(bad("a header field is malformed"))?;
    if fields.len() > MOST_FIELDS {
        return Err(bad("there are too many header fields"));
    }
    let length = single(&fields, "content-length").map_err(bad)?;
    let encoding = single(&fields, "transfer-encoding").map_err(bad)?;
    single(&fields, "host").map_err(bad)?;
    let Some(path) = &first.path else {
        return match (length, encoding) {
            (None, None) => Ok(Request { target: first.target, head: vec![], body: Body::Endless }),
            _ => Err(bad("CONNECT has no body")),
        };
    };
    let body = match (length, encoding) {
        (Some(_), Some(_)) => return Err(bad("Content-Length and Transfer-Encoding contradict each other")),
        (None, None) => Body::Length(0),
        (Some(length), None) => Body::Length(digits(length).ok_or(bad("Content-Length is not a number"))?),
        (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") && first.version == "HTTP/1.1" => {
            Body::Chunked(Chunks::BEGIN)
        }
        (None, Some(_)) => return Err(bad("Transfer-Encoding must be chunked, in HTTP/1.1")),
    };
    let head = rewritten(&first, path, &fields, length.is_some(), &body);
    Ok(Request { target: first.target, head, body })
}

fn split(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(head);
    std::iter::from_fn(move || {
        let now = rest?;
        let at = now.windows(2).position(|pair| pair == b"\r\n");
        rest = at.and_then(|at| now.get(at + 2..));
        Some(at.and_then(|at| now.get(..at)).unwrap_or(now))
    })
}

struct FirstLine<'a> {
    method: &'a str,
    target: Target,
    /// As the host is to see it; `None` for CONNECT.
    path: Option<String>,
    version: &'a str,
}

fn first_line(line: &str) -> Result<FirstLine<'_>, &'static str> {
    let wrong = "the first line is not METHOD TARGET HTTP/1.1";
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong);
    };
    let visible = target.bytes().all(|b| b.is_ascii_graphic());
    if !is_token(method.as_bytes()) || !visible || !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return Err(wrong);
    }
    if method == "CONNECT" {
        let target = authority(target, None).ok_or("CONNECT needs HOST:PORT")?;
        return Ok(FirstLine { method, target, path: None, version });
    }
    let rest = match target.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => rest,
        _ => return Err("the target must be http://HOST/PATH, or HOST:PORT with CONNECT"),
    };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if path.contains('#') {
        return Err("the target has a fragment");
    }
    let target = authority(host, Some(80)).ok_or("the target has no HOST or HOST:PORT")?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(FirstLine { method, target, path: Some(path), version })
}

/// No user, no password, nothing but the two.
fn authority(text: &str, port: Option<u16>) -> Option<Target> {
    let (host, port) = match text.rsplit_once(':').filter(|_| !text.ends_with(']')) {
        Some((host, port)) => (host, parse_port(port)?),
        None => (text, port?),
    };
    if host.is_empty() || host.len() > MOST_HOST || !host.bytes().all(is_of_host) {
        return None;
    }
    let place = Host::parse(host).map(|host| HostPort { host, port });
    let shown = place.as_ref().map_or_else(|| format!("{host}:{port}"), HostPort::to_string);
    Some(Target { shown, place })
}

fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
}

fn is_token(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

/// A name, as it is and in small letters, and a value without the blanks around it.
struct Field<'a> {
    name: &'a [u8],
    lower: String,
    value: &'a [u8],
}

fn field(line: &[u8]) -> Option<Field<'_>> {
    let at = line.iter().position(|b| *b == b':')?;
    let (name, value) = (line.get(..at)?, line.get(at + 1..)?);
    // A line that begins with a blank would go on with the one before; a blank before the colon is read in two ways.
    let plain = |b: &u8| *b == b'\t' || (*b >= b' ' && *b != 0x7f);
    if !is_token(name) || !value.iter().all(plain) {
        return None;
    }
    Some(Field { name, lower: String::from_utf8_lossy(name).to_ascii_lowercase(), value: value.trim_ascii() })
}

fn single<'a>(fields: &[Field<'a>], name: &str) -> Result<Option<&'a [u8]>, &'static str> {
    let mut found = fields.iter().filter(|field| field.lower == name).map(|field| field.value);
    let one = found.next();
    if found.next().is_some() { Err("Host, Content-Length or Transfer-Encoding stands there twice") } else { Ok(one) }
}

fn digits(text: &[u8]) -> Option<u64> {
    let plain = (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok()?.parse().ok().filter(|_| plain)
}

/// For the host: origin-form, its own name, nothing that was for us, and how long the body is in our words.
fn rewritten(first: &FirstLine<'_>, path: &str, fields: &[Field<'_>], has_length: bool, body: &Body) -> Vec<u8> {
    let named = fields.iter().filter(|field| field.lower == "connection");
    let named = named.flat_map(|field| field.value.split(|b| *b == b','));
    let named: Vec<Vec<u8>> = named.map(|name| name.trim_ascii().to_ascii_lowercase()).collect();
    let for_us = |name: &str| {
        name.starts_with("proxy-")
            || matches!(name, "connection" | "keep-alive" | "te" | "trailer" | "upgrade" | "host")
            || matches!(name, "content-length" | "transfer-encoding")
            || named.iter().any(|other| other == name.as_bytes())
    };
    let host = match &first.target.place {
        Some(HostPort { host, port: 80 }) => host.to_string(),
        _ => first.target.shown.clone(),
    };
    let mut head = format!("{} {path} {}\r\nHost: {host}\r\n", first.method, first.version).into_bytes();
    for field in fields.iter().filter(|field| !for_us(&field.lower)) {
        head.extend([field.name, b": ", field.value, b"\r\n"].concat());
    }
    match body {
        Body::Length(length) if has_length => head.extend(format!("Content-Length: {length}\r\n").bytes()),
        Body::Chunked(_) => head.extend(b"Transfer-Encoding: chunked\r\n"),
        Body::Length(_) | Body::Endless => {}
    }
    head.extend(b"Connection: close\r\n\r\n");
    head
}

#[cfg(test)]
mod tests;
