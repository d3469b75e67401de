//! What a program finds in a cell with a broker: its port, variables, certificates, and its own loopback.

use super::server::Server;
use super::{admitted, restricted};
use crate::harness::*;
use crate::network::SERVES_HELLO;

#[test]
fn the_place_of_the_broker_can_not_be_taken() {
    let server = Server::mirror();
    let ran = server
        .program(
            "import errno\n\
             print('fds', sorted(int(fd) for fd in os.listdir('/proc/self/fd')))\n\
             for family, ip in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):\n\
             \x20   for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):\n\
             \x20       s = socket.socket(family)\n\
             \x20       for option in options: s.setsockopt(socket.SOL_SOCKET, option, 1)\n\
             \x20       try: s.bind((ip, 3128)); s.listen(); print('done')\n\
             \x20       except OSError as e: print(errno.errorcode[e.errno])\n\
             print('broker', status('GET http://HERE/ HTTP/1.1\\r\\n\\r\\n'))",
        )
        .run();
    ran.passes();
    assert_eq!(ran.out().matches("EADDRINUSE").count(), 12, "{}", ran.out());
    // Three streams, and the directory that is being listed.
    assert_eq!((ran.tells("fds"), ran.tells("broker")), ("[0, 1, 2, 3]", "200"));
}

#[test]
fn a_program_still_talks_to_itself() {
    let source = format!(
        "{SERVES_HELLO}\
         for name in ('localhost', '127.0.0.1'): print(urlopen(f'http://{{name}}:{{server.server_port}}/').read())"
    );
    let ran = restricted(&["example.org:443"], &source).run();
    ran.passes();
    assert_eq!((ran.out(), admitted(&ran).len()), ("b'hello'\nb'hello'\n", 0));
}

#[test]
fn the_callers_own_variables_come_last() {
    let source = "print(os.environ['http_proxy'], os.environ['HTTPS_PROXY'], os.environ['no_proxy'])";
    let ran = restricted(&["example.org:443"], source).run();
    ran.passes();
    assert_eq!(ran.out(), "http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1\n");
    let ran = restricted(&["example.org:443"], source).flag("--env", "http_proxy=mine").run();
    assert!(ran.passes().out().starts_with("mine http://127.0.0.1:3128 "), "{}", ran.out());
    // No other network has any.
    let ran =
        python("import os; print([k for k in os.environ if 'proxy' in k.lower()])").flag("--network", "local").run();
    assert_eq!(ran.passes().out(), "[]\n");
}

#[test]
fn certificates_are_there_and_name_servers_are_not() {
    let source = "print([os.path.exists(path) for path in ('/etc/ssl', '/etc/resolv.conf')])";
    let ran = restricted(&["example.org:443"], source).run();
    let here = if std::path::Path::new("/etc/ssl").exists() { "True" } else { "False" };
    assert_eq!(ran.passes().out(), format!("[{here}, False]\n"));
}
