//! What a program says to the broker: malformed, twice, never to its end.

use super::server::Server;
use super::{CLASS, refused};

#[test]
fn malformed_heads_are_answered_and_nobody_is_reached() {
    let server = Server::mirror();
    let here = server.here();
    let nowhere = [
        "hello\r\n\r\n".to_owned(),
        "\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n".into(),
        "OPTIONS * HTTP/1.1\r\n\r\n".into(),
        format!("GET https://{here}/ HTTP/1.1\r\n\r\n"),
        format!("GET http://u@{here}/ HTTP/1.1\r\n\r\n"),
        format!("GET http://{here}/ HTTP/2\r\n\r\n"),
        format!("GET http://{here}/\n\n"),
        format!("GET http://{here}/ HTTP/1.1\n\n"),
        format!("GET http://{here}/\0 HTTP/1.1\r\n\r\n"),
        format!("CONNECT {here}/ HTTP/1.1\r\n\r\n"),
        "CONNECT example.org HTTP/1.1\r\n\r\n".into(),
        format!("CONNECT \u{e4}.example:{} HTTP/1.1\r\n\r\n", server.port),
    ];
    let ran = server.program(&format!("for head in {nowhere:?}: print(status(head))")).run();
    ran.violates(CLASS);
    assert_eq!(ran.out(), "400\n".repeat(nowhere.len()));

    let somewhere = [
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "A: b\r\n c: d",
        " A: b",
        "A : b",
        "A: b\rc",
    ];
    let ask = |of: &str| {
        let program = format!(
            "for fields in {somewhere:?}: print(status(f'POST http://{of}/ HTTP/1.1\\r\\n{{fields}}\\r\\n\\r\\nx'))\n\
             print(status('POST http://{of}/ HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nz\\r\\n'))"
        );
        server.program(&program).run()
    };
    // To who may be spoken to; and to who may not.
    let ran = ask("HERE");
    ran.violates(CLASS);
    assert_eq!(ran.out(), "400\n".repeat(somewhere.len() + 1));
    assert_eq!(refused(&ran), vec![here.clone(); somewhere.len() + 1]);
    let ran = ask("other.example:80");
    ran.violates(CLASS);
    assert_eq!(ran.out(), "400\n".repeat(somewhere.len()) + "403\n");
    assert_eq!(refused(&ran), vec!["other.example:80"; somewhere.len() + 1]);
    assert_eq!(server.visits(), 0);

    let ran = server
        .program(
            "print(status('GET http://HERE/ HTTP/1.1\\r\\nA: ' + 'a' * 20000))\n\
             print(status('GET http://HERE/ HTTP/1.1\\r\\nA: ' + 'a' * 10000 + '\\r\\n\\r\\n'))",
        )
        .run();
    ran.violates(CLASS);
    assert_eq!((ran.out(), server.visits(), refused(&ran)), ("431\n200\n", 1, vec![here]));
}

#[test]
fn a_second_request_on_the_same_connection_goes_nowhere() {
    let server = Server::mirror();
    let ran = server
        .program(
            "one = 'POST http://HERE/one HTTP/1.1\\r\\nContent-Length: 2\\r\\n\\r\\nab'\n\
             two = 'GET http://HERE/two HTTP/1.1\\r\\n\\r\\n'\n\
             chunked = 'POST http://HERE/three HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n1\\r\\nx\\r\\n0\\r\\n\\r\\n'\n\
             for first in (one, chunked):\n\
             \x20   answer = ask(first + two)\n\
             \x20   print(answer.count(b'200 OK'), b'/two' in answer)",
        )
        .run();
    ran.passes();
    assert_eq!((ran.out(), server.visits()), ("1 False\n1 False\n", 2));
}

#[test]
fn whoever_never_finishes_its_head_is_in_nobodys_way() {
    let server = Server::mirror();
    let ran = server
        .program(
            "slow = socket.create_connection(('127.0.0.1', 3128))\n\
             slow.sendall(b'GET http://HERE/ HTTP/1.1\\r\\nA: b')\n\
             print(status('GET http://HERE/ HTTP/1.1\\r\\n\\r\\n'))\n\
             print(slow.recv(12).decode())",
        )
        .run();
    ran.passes();
    assert_eq!((ran.out(), server.visits()), ("200\nHTTP/1.1 408\n", 1));
    // And nobody waits for it when the run is over.
    server.program("slow = socket.create_connection(('127.0.0.1', 3128)); slow.send(b'GET')").run().passes();
}
