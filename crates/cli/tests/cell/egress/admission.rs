//! Who is reached, and who is not.

use std::net::TcpListener;

use serde_json::Value;

use super::server::Server;
use super::{CLASS, admitted, refused, restricted};
use crate::harness::*;

#[test]
fn an_allowed_address_is_reached_by_get_and_by_connect() {
    let server = Server::mirror();
    let here = server.here();
    let ran = server
        .program(
            "print(urlopen('http://HERE/a?b=c').read().decode())\n\
             s = tunnel('HERE')\n\
             s.sendall(b'GET /tunnel HTTP/1.1\\r\\nHost: whatever\\r\\n\\r\\n')\n\
             print(s.recv(9999).split(b'\\r\\n\\r\\n', 1)[1].decode())",
        )
        .run();
    ran.passes();
    let said = ran.out().to_ascii_lowercase();
    assert!(said.starts_with(&format!("get /a?b=c http/1.1\r\nhost: {here}\r\n")), "{said}");
    assert!(said.contains("connection: close") && !said.contains("proxy"), "{said}");
    // A tunnel is the program's own.
    assert!(said.contains("get /tunnel http/1.1\r\nhost: whatever\r\n\r\n"), "{said}");
    assert_eq!(server.visits(), 2);
    let events = admitted(&ran);
    assert_eq!(events.len(), 2, "{:#}", ran.outcome);
    for event in events {
        assert_eq!((&event["host"], &event["port"]), (&"127.0.0.1".into(), &server.port.into()));
        assert_eq!(event["address"], here.as_str());
        assert!(event["bytes_sent"].as_u64() > Some(20) && event["bytes_received"].as_u64() > Some(20), "{event:?}");
        assert!(event["ms"].is_u64());
    }
    let config = &ran.outcome["runtime_config"];
    assert_eq!((&config["network_policy"], &config["allowed_hosts"][0]), (&"restricted".into(), &here.into()));
    let enforced = ran.outcome["enforced"].as_array().expect("a list");
    assert!(enforced.iter().any(|layer| layer["layer"] == "network"), "{enforced:?}");
}

#[test]
fn who_is_not_allowed_is_not_reached() {
    // Both are of this host, and one of them is allowed, once by its address and once by a name that points there.
    let (server, other) = (Server::mirror(), Server::mirror());
    let (here, there) = (server.here(), other.here());
    let by_name = format!("localhost:{}", other.port);
    let targets = [
        there.clone(),
        by_name.clone(),
        format!("localhost.:{}", other.port),
        format!("[::ffff:127.0.0.1]:{}", other.port),
        format!("[::1]:{}", other.port),
        format!("2130706433:{}", other.port),
        format!("0x7f000001:{}", other.port),
        format!("127.1:{}", other.port),
        format!("0.0.0.0:{}", other.port),
        "127.0.0.1:22".into(),
        "169.254.169.254:80".into(),
        "[::ffff:169.254.169.254]:80".into(),
        "[fe80::1]:80".into(),
        "example.org:443".into(),
        format!("{here}.example.org:443"),
        format!("x.127.0.0.1:{}", server.port),
    ];
    let targets = &targets[..];
    let ran = restricted(
        &[&here, &by_name],
        &format!(
            "for target in {targets:?}:\n\
             \x20   print(target, status(f'CONNECT {{target}} HTTP/1.1\\r\\n\\r\\n'), status(f'GET http://{{target}}/ HTTP/1.1\\r\\n\\r\\n'))\n\
             print('allowed', status('GET http://{here}/ HTTP/1.1\\r\\n\\r\\n'))"
        ),
    )
    .run();
    ran.violates(CLASS);
    for target in targets {
        assert_eq!(ran.tells(target), "403 403", "{target}");
    }
    assert_eq!(ran.tells("allowed"), "200");
    assert_eq!((server.visits(), other.visits()), (1, 0));
    let record = refused(&ran);
    assert_eq!(record.len(), 2 * targets.len(), "{record:?}");
    assert_eq!(record[..4], [&there[..], &there, &by_name, &by_name]);
    assert!(record.contains(&"169.254.169.254:80".into()) && record.contains(&format!("2130706433:{}", other.port)));
    assert_eq!(admitted(&ran).len(), 1);
    // Where a name points to is on record, and not for the program.
    let source = format!("print(ask('CONNECT {by_name} HTTP/1.1\\r\\n\\r\\n').decode())");
    let ran = restricted(&[&by_name], &source).run();
    assert_eq!(ran.violates(CLASS).attempts(CLASS)[0]["note"], "points to 127.0.0.1, which is not public");
    assert!(ran.out().contains("not public") && !ran.out().contains("127.0.0.1"), "{}", ran.out());
}

#[test]
fn nothing_is_reached_past_the_broker() {
    let server = Server::mirror();
    let ran = server
        .program(&format!(
            "import errno\n\
             def direct(*to):\n\
             \x20   s = socket.socket(); s.settimeout(200)\n\
             \x20   return errno.errorcode.get(s.connect_ex(to), 'done')\n\
             print('loopback', direct('127.0.0.1', {}))\n\
             print('outside', direct('192.0.2.1', 443))\n\
             print('metadata', direct('169.254.169.254', 80))",
            server.port
        ))
        .run();
    // The cell's own loopback, where nobody is.
    assert_eq!(ran.tells("loopback"), "ECONNREFUSED");
    assert_eq!((ran.tells("outside"), ran.tells("metadata")), ("ENETUNREACH", "ENETUNREACH"));
    ran.violates(CLASS);
    let addresses: Vec<&Value> = ran.attempts(CLASS).iter().map(|detail| &detail["address"]).collect();
    assert_eq!(addresses, ["192.0.2.1:443", "169.254.169.254:80"]);
    assert_eq!(server.visits(), 0);
}

#[test]
fn two_cells_have_a_broker_each() {
    let (one, two) = (Server::mirror(), Server::mirror());
    let source = format!(
        "for target in ('{}', '{}'): print(target, status(f'GET http://{{target}}/ HTTP/1.1\\r\\n\\r\\n'))",
        one.here(),
        two.here()
    );
    let going = [restricted(&[&one.here()], &source).start(), restricted(&[&two.here()], &source).start()];
    let [first, second] = going.map(Going::finish);
    assert_eq!((first.tells(&one.here()), first.tells(&two.here())), ("200", "403"));
    assert_eq!((second.tells(&one.here()), second.tells(&two.here())), ("403", "200"));
    assert_eq!((refused(&first), refused(&second)), (vec![two.here()], vec![one.here()]));
    assert_eq!((one.visits(), two.visits()), (1, 1));
}

#[test]
fn an_allowed_host_that_is_not_there_is_nobodys_fault() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").to_string();
    let source = format!(
        "for target in ('{closed}', 'nobody-of-this-name:80'): print(status(f'CONNECT {{target}} HTTP/1.1\\r\\n\\r\\n'))"
    );
    let ran = restricted(&[&closed, "nobody-of-this-name:80"], &source).run();
    ran.passes();
    assert_eq!(ran.out(), "502\n502\n");
    let events = ran.outcome["events"].as_array().expect("a list");
    assert_eq!(events.iter().map(|event| &event["kind"]).collect::<Vec<_>>(), ["egress.failed", "egress.failed"]);
}

#[test]
fn flags_that_say_nothing_sensible() {
    let one = |hosts: &[&str], network: &str, parts: &[&str]| {
        let cell = exec(&["true"]).flag("--network", network);
        let ran = hosts.iter().fold(cell, |cell, host| cell.flag("--allow-host", *host)).run();
        for part in parts {
            ran.refused(part);
        }
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    };
    one(&[], "restricted", &["--allow-host NAME:PORT"]);
    for network in ["none", "local", "full"] {
        one(&["example.org:443"], network, &["--allow-host", "--network restricted"]);
    }
    for host in ["example.org", "example.org:0", ":443", "*:443", "127.1:80", "http://a:1", "a b:1", "::1:80", ""] {
        one(&["good.example:1", host], "restricted", &["NAME:PORT"]);
    }
    for host in ["169.254.169.254:80", "[fe80::1]:80", "[::ffff:169.254.169.254]:80", "0.0.0.0:80", "224.0.0.1:1"] {
        one(&[host], "restricted", &[host, "never reached"]);
    }
    exec(&["true"]).flag("--network", "restricted").flag("--allow-host", "*.example.org:443").run().passes();
}
