//! What the broker refuses is on record: in order, counted, and whatever the program makes of it.

use super::server::Server;
use super::{CLASS, refused, restricted};

#[test]
fn a_refusal_that_is_swallowed_is_still_a_fail() {
    let source = "\
        try: urlopen('http://example.org/')\n\
        except Exception as e: print(e)\n\
        print(ask('CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n').decode().splitlines()[-1])";
    let ran = restricted(&["127.0.0.1:1"], source).run();
    ran.violates(CLASS);
    assert_eq!(ran.outcome["exit_code"], 0);
    assert!(ran.out().contains("403") && ran.out().contains("not one of the allowed hosts"), "{}", ran.out());
    assert_eq!(refused(&ran), ["example.org:80", "example.org:443"]);
    let ran = restricted(&["127.0.0.1:1"], source).text().run();
    assert!(ran.stderr.contains("NetworkAccessViolation: example.org:80 is not one of"), "{}", ran.stderr);
    // Listed only.
    let ran = restricted(&["127.0.0.1:1"], source).flag("--on-violation", "note").run();
    assert_eq!((&ran.outcome["status"], ran.code), (&"pass".into(), 0), "{:#}", ran.outcome);
    assert_eq!(refused(&ran), ["example.org:80", "example.org:443"]);
}

#[test]
fn under_kill_a_refusal_is_the_end() {
    let server = Server::mirror();
    let ask = |host: &str| {
        let source = format!("print(status('GET http://{host}/ HTTP/1.1\\r\\n\\r\\n'), flush=True)");
        server.program(&source).flag("--on-violation", "kill").run()
    };
    let ran = ask("example.org");
    ran.violates(CLASS);
    assert_eq!((ran.terminal(), ran.out()), (CLASS, ""));
    assert_eq!(refused(&ran), ["example.org:80"]);
    let ran = ask("HERE");
    ran.passes();
    assert_eq!(ran.out(), "200\n");
}

#[test]
fn the_record_is_in_the_order_of_the_attempts() {
    let ran = restricted(
        &["127.0.0.1:1"],
        "for number in range(20):\n\
         \x20   status(f'CONNECT host-{number}.example:1 HTTP/1.1\\r\\n\\r\\n')\n\
         \x20   socket.socket().connect_ex(('192.0.2.1', 1000 + number))",
    )
    .run();
    ran.violates(CLASS);
    let addresses: Vec<String> =
        ran.attempts(CLASS).iter().filter_map(|detail| Some(detail["address"].as_str()?.to_owned())).collect();
    let expected: Vec<String> =
        (0..20).flat_map(|n| [format!("host-{n}.example:1"), format!("192.0.2.1:{}", 1000 + n)]).collect();
    assert_eq!(addresses, expected);
}

#[test]
fn a_flood_of_refusals_is_counted() {
    let ran =
        restricted(&["127.0.0.1:1"], "for number in range(150): status('CONNECT example.org:1 HTTP/1.1\\r\\n\\r\\n')")
            .run();
    ran.violates(CLASS);
    assert_eq!((refused(&ran).len(), &ran.outcome["violations_dropped"]), (100, &50.into()));
}

#[test]
fn who_does_not_wait_for_the_answer_has_asked() {
    // Said and gone; half said and gone; and behind as many connections as are served at one time.
    for (before, text) in [
        (0, "CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n"),
        (0, "CONNECT example.org:443 HTTP/1.1\\r\\n"),
        (70, "GET http://example.org:443/ HTTP/1.1\\r\\n\\r\\n"),
    ] {
        let ran = restricted(
            &["127.0.0.1:1"],
            &format!(
                "idle = [socket.create_connection(('127.0.0.1', 3128)) for _ in range({before})]\n\
                 s = socket.create_connection(('127.0.0.1', 3128))\n\
                 s.sendall('{text}'.encode())\n\
                 os._exit(0)"
            ),
        )
        .run();
        ran.violates(CLASS);
        assert_eq!(refused(&ran), ["example.org:443"], "{before} {text}");
        assert_eq!(ran.terminal(), "none");
    }
    // The same to an allowed host is harmless, whether it arrives or not.
    let server = Server::mirror();
    server
        .program(
            "s = socket.create_connection(('127.0.0.1', 3128))\n\
             s.sendall(b'CONNECT HERE HTTP/1.1\\r\\n\\r\\n')\n\
             os._exit(0)",
        )
        .run()
        .passes();
}
