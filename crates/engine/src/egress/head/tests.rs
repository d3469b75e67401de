//! Heads, good and bad.

use super::*;

fn good(head: &str) -> Request {
    parse(head.as_bytes()).unwrap_or_else(|bad| panic!("{head:?}: {bad:?}"))
}

fn text(head: &str) -> String {
    String::from_utf8(good(head).head).expect("ASCII")
}

#[test]
fn connect_is_a_tunnel() {
    for (head, shown) in [
        (
            "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nProxy-Authorization: x\r\n\r\n",
            "example.org:443",
        ),
        ("CONNECT Example.ORG.:443 HTTP/1.0\r\n\r\n", "example.org:443"),
        ("CONNECT [2001:db8::1]:1 HTTP/1.1\r\n\r\n", "[2001:db8::1]:1"),
        ("CONNECT 127.0.0.1:80 HTTP/1.1\r\n\r\n", "127.0.0.1:80"),
    ] {
        let request = good(head);
        assert_eq!((request.target.shown.as_str(), request.body, request.head), (shown, Body::Endless, vec![]));
        assert!(request.target.place.is_some());
    }
}

#[test]
fn another_request_is_rewritten() {
    let head = "POST http://Example.org/a?b=c HTTP/1.1\r\nHost: evil\r\nProxy-Connection: keep-alive\r\nX-One:  1 \r\n\
                Connection: x-two, Keep-Alive\r\nX-Two: 2\r\nKeep-Alive: 3\r\nTE: trailers\r\nUpgrade: h2c\r\n\
                Content-Length: 5\r\n\r\n";
    let expected =
        "POST /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-One: 1\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
    assert_eq!(text(head), expected);
    assert_eq!(good(head).body, Body::Length(5));
    for (target, line, host) in [
        ("http://a", "GET / HTTP/1.1", "a"),
        ("HTTP://a:80?x", "GET /?x HTTP/1.1", "a"),
        ("http://a:8080/", "GET / HTTP/1.1", "a:8080"),
        ("http://[::1]:8080/x", "GET /x HTTP/1.1", "[::1]:8080"),
        ("http://[::1]", "GET / HTTP/1.1", "[::1]"),
    ] {
        let seen = text(&format!("GET {target} HTTP/1.1\r\n\r\n"));
        assert_eq!(seen, format!("{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    }
    let chunked = good("PUT http://a/ HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n");
    assert_eq!(chunked.body, Body::Chunked(Chunks::BEGIN));
    assert!(chunked.head.windows(28).any(|part| part == b"\r\nTransfer-Encoding: chunked"));
}

#[test]
fn what_names_no_target() {
    for head in [
        "\r\n\r\n",
        "\r\nGET http://a/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n\r\n",
        "GET https://a/ HTTP/1.1\r\n\r\n",
        "GET ftp://a/ HTTP/1.1\r\n\r\n",
        "GET  http://a/ HTTP/1.1\r\n\r\n",
        "GET http://a/ HTTP/1.1 \r\n\r\n",
        "GET http://a/ HTTP/2\r\n\r\n",
        "GET http://a/ HTTP/1.1x\r\n\r\n",
        "GET http://a/ http/1.1\r\n\r\n",
        "GET http://a/\r\n\r\n",
        "GET\thttp://a/\tHTTP/1.1\r\n\r\n",
        "G(T http://a/ HTTP/1.1\r\n\r\n",
        "GET http:/// HTTP/1.1\r\n\r\n",
        "GET http://:80/ HTTP/1.1\r\n\r\n",
        "GET http://a:/ HTTP/1.1\r\n\r\n",
        "GET http://a:0/ HTTP/1.1\r\n\r\n",
        "GET http://a:99999/ HTTP/1.1\r\n\r\n",
        "GET http://user@a/ HTTP/1.1\r\n\r\n",
        "GET http://a%2eb/ HTTP/1.1\r\n\r\n",
        "GET http://a\\b/ HTTP/1.1\r\n\r\n",
        "GET http://a/#x HTTP/1.1\r\n\r\n",
        "GET http://\u{e4}/ HTTP/1.1\r\n\r\n",
        "CONNECT a HTTP/1.1\r\n\r\n",
        "CONNECT a: HTTP/1.1\r\n\r\n",
        "CONNECT a:b HTTP/1.1\r\n\r\n",
        "CONNECT a:+1 HTTP/1.1\r\n\r\n",
        "CONNECT http://a:443 HTTP/1.1\r\n\r\n",
        "CONNECT a:443/ HTTP/1.1\r\n\r\n",
        "CONNECT :443 HTTP/1.1\r\n\r\n",
        "CONNECT u@a:443 HTTP/1.1\r\n\r\n",
        "GET http://a/ HTTP/1.1\n\n",
        "GET http://a/ HTTP/1.1\r\nA: b\n\r\n",
    ] {
        match parse(head.as_bytes()) {
            Err(Malformed { target: None, .. }) => {}
            Err(Malformed { target: Some(_), .. }) if head.contains("A: b") => {}
            other => panic!("{head:?}: {other:?}"),
        }
    }
}

#[test]
fn what_two_readers_would_read_differently() {
    for fields in [
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding:",
        "Content-Length: +1",
        "Content-Length: 1, 1",
        "Content-Length: 0x1",
        "Content-Length: -1",
        "Content-Length:",
        "Content-Length: 99999999999999999999",
        "Content-Length : 1",
        " Content-Length: 1",
        "A: b\r\n c",
        "A: b\r\n\tc",
        "A: b\rc",
        "A: b\u{1}c",
        "A: b\u{7f}",
        "A b: c",
        ": c",
        "A",
        "Host: a\r\nHost: b",
    ] {
        let head = format!("GET http://a/ HTTP/1.1\r\n{fields}\r\n\r\n");
        match parse(head.as_bytes()) {
            Err(Malformed { target: Some(target), .. }) => assert_eq!(target.shown, "a:80"),
            other => panic!("{fields:?}: {other:?}"),
        }
    }
    for fields in ["Content-Length: 1", "Transfer-Encoding: chunked"] {
        assert!(parse(format!("CONNECT a:1 HTTP/1.1\r\n{fields}\r\n\r\n").as_bytes()).is_err());
    }
    assert!(parse(b"GET http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
    assert!(parse(format!("GET http://a/ HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101)).as_bytes()).is_err());
}

#[test]
fn an_address_in_disguise_is_shown_and_is_no_host() {
    for host in ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "a..b"] {
        let target = good(&format!("CONNECT {host}:80 HTTP/1.1\r\n\r\n")).target;
        assert_eq!((target.shown, target.place), (format!("{host}:80"), None));
    }
    let target = good("GET http://[::ffff:127.0.0.1]/ HTTP/1.1\r\n\r\n").target;
    assert_eq!(target.shown, "127.0.0.1:80");
}

#[test]
fn a_head_ends_where_it_can_not_go_on() {
    assert_eq!(end(b"GET http://a/ HTTP/1.1\r\n\r\nrest"), Some(26));
    assert_eq!(end(b"GET http://a/ HTTP/1.1\r\nA: b\r\n"), None);
    assert_eq!(end(b"GET http://a/\nrest"), Some(14));
    assert_eq!(end(b"GET\0rest"), Some(4));
    let known = target(b"CONNECT a:1 HTTP/1.1\r\nA: b").expect("a whole line").expect("a good one");
    assert_eq!(known.shown, "a:1");
    assert!(target(b"CONNECT a:1\r\nA: b").expect("a whole line").is_err());
    assert_eq!(target(b"CONNECT a:1 HTTP/1.1"), None);
}

#[test]
fn what_is_meant_by_a_malformed_head() {
    for (head, shown) in [
        ("GET https://a.example/x HTTP/1.1\r\n\r\n", Some("a.example:443")),
        ("GET https://a.example:8443/x HTTP/1.1\r\n\r\n", Some("a.example:8443")),
        ("GET http://user:word@a.example/ HTTP/1.1\r\n\r\n", Some("a.example:80")),
        ("GET http://a@b@c.example/ HTTP/1.1\r\n\r\n", Some("c.example:80")),
        ("CONNECT u@a.example:1 HTTP/1.1\r\n\r\n", Some("a.example:1")),
        ("CONNECT a.example:0 HTTP/1.1\r\n\r\n", Some("a.example:0")),
        ("CONNECT a.example:99999 HTTP/1.1\r\n\r\n", Some("a.example:99999")),
        ("GET http://a.example/ HTTP/1.1\n\n", Some("a.example:80")),
        ("GET http://a.example\n", Some("a.example:80")),
        ("GET http://a.example/\0", Some("a.example:80")),
        ("CONNECT a.example HTTP/1.1\r\n\r\n", Some("a.example")),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", None),
        ("hello\r\n\r\n", None),
        ("\r\n\r\n", None),
        ("GET http://\u{e4}:80/ HTTP/1.1\r\n\r\n", None),
    ] {
        assert_eq!(guess(head.as_bytes()).map(|target| target.shown).as_deref(), shown, "{head:?}");
    }
    assert_eq!(beginning(b"a\x1b[2J\xff\r\nb"), "a\\x1b[2J\\xff");
    assert_eq!(beginning(&[b'a'; 200]), format!("{}...", "a".repeat(80)));
}

#[test]
fn no_bytes_make_it_panic() {
    let whole = b"POST http://a:1/ HTTP/1.1\r\nContent-Length: 1\r\nConnection: a,,b\r\n\r\n";
    for cut in 0..whole.len() {
        let _ = (parse(&whole[..cut]), target(&whole[..cut]), end(&whole[..cut]), guess(&whole[..cut]));
        for byte in 0..=255 {
            let mut bytes = whole.to_vec();
            bytes[cut] = byte;
            let _ = (parse(&bytes), target(&bytes), end(&bytes), guess(&bytes), beginning(&bytes));
        }
    }
}
