//! The network: nothing of the host can be reached, and an attempt is told from a mere socket.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::harness::*;

const CLASS: &str = "NetworkAccessViolation";

/// The beginning of a program that is a `server` on its own loopback, which says hello.
pub const SERVES_HELLO: &str = "\
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import urlopen
class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'hello')
    def log_message(self, *words): pass
server = HTTPServer(('127.0.0.1', 0), Hello)
threading.Thread(target=server.serve_forever, daemon=True).start()
";

/// Each address on record, in order.
fn addresses(ran: &Ran) -> Vec<&str> {
    ran.attempts(CLASS).iter().filter_map(|detail| detail["address"].as_str()).collect()
}

/// The calls on record, in order.
fn calls(ran: &Ran) -> Vec<&str> {
    ran.attempts(CLASS).iter().filter_map(|detail| detail["syscall"].as_str()).collect()
}

#[test]
fn a_family_that_is_not_of_the_internet_is_a_network_violation() {
    // vsock, packet, alg, bluetooth, netlink to audit, to the connector, generic.
    let families = [
        ["40", "1", "0"],
        ["17", "3", "768"],
        ["38", "5", "0"],
        ["31", "3", "0"],
        ["16", "3", "9"],
        ["16", "3", "11"],
        ["16", "3", "16"],
    ];
    for network in ["none", "local", "full"] {
        let ran = attack("sockets").program(&families.concat()).flag("--network", network).run();
        ran.violates(CLASS);
        let told: Vec<&str> = ran.out().lines().filter_map(|l| l.split(' ').nth(1)).collect();
        assert_eq!(told, ["EAFNOSUPPORT"; 7], "{network}");
        assert_eq!(
            addresses(&ran),
            [
                "family vsock, type 1, protocol 0",
                "family packet, type 3, protocol 768",
                "family alg, type 5, protocol 0",
                "family bluetooth, type 3, protocol 0",
                "family netlink, type 3, protocol 9",
                "family netlink, type 3, protocol 11",
                "family netlink, type 3, protocol 16",
            ],
            "{network}"
        );
    }
}

#[test]
fn a_raw_socket_is_a_network_violation() {
    for network in ["none", "local"] {
        // Raw ICMP, raw of any protocol, raw ICMP of version 6, the ping socket.
        let ran = attack("sockets")
            .program(&["2", "3", "1", "2", "3", "255", "10", "3", "58", "2", "2", "1"])
            .flag("--network", network)
            .run();
        ran.violates(CLASS);
        assert!(!ran.out().contains("done"), "{}", ran.out());
        assert_eq!(calls(&ran), ["socket"; 4], "{network}");
    }
}

#[test]
fn asking_the_kernel_for_addresses_is_refused_and_nobody_is_accused() {
    let ran = attack("sockets").program(&["16", "3", "0"]).run();
    ran.passes();
    assert_eq!(ran.tells("16"), "EAFNOSUPPORT");
}

#[test]
fn a_socket_that_is_made_and_not_used_is_harmless() {
    // TCP and UDP of both versions, and Unix.
    let ran = attack("sockets")
        .program(&["2", "1", "0", "2", "1", "6", "2", "2", "17", "10", "1", "0", "10", "2", "0", "1", "1", "0"])
        .run();
    ran.passes();
    assert!(ran.out().lines().all(|l| l.ends_with(" done")), "{}", ran.out());
}

#[test]
fn a_probe_for_multipath_tcp_is_harmless() {
    // What Go's net package does before it listens.
    attack("sockets").program(&["2", "1", "262"]).run().passes();
}

/// Every call that names a destination, towards an address outside.
#[track_caller]
fn all_ways_out_are_on_record(network: &str) {
    let ran = attack("send-out").program(&["192.0.2.1", "9"]).flag("--network", network).run();
    for what in ["sendto", "sendmsg", "sendmmsg", "fastopen", "connect"] {
        assert_eq!(ran.tells(what), "ENETUNREACH", "{what}");
    }
    ran.violates(CLASS);
    let all = ["sendto", "sendmsg", "sendmmsg", "sendto", "connect"];
    assert_eq!(calls(&ran), all);
    assert_eq!(addresses(&ran), ["192.0.2.1:9"; 5]);
}

#[test]
fn every_call_that_names_a_destination_is_on_record() {
    all_ways_out_are_on_record("none");
}

#[test]
fn every_call_that_names_a_destination_outside_is_on_record_with_a_loopback() {
    all_ways_out_are_on_record("local");
}

#[test]
fn a_destination_without_a_family_is_on_record() {
    for network in ["none", "local"] {
        let ran = attack("send-unspec").program(&["192.0.2.1", "9"]).flag("--network", network).run();
        assert_eq!(ran.tells("sendto"), "ENETUNREACH");
        ran.violates(CLASS);
        assert_eq!(addresses(&ran), ["192.0.2.1:9"]);
    }
}

#[test]
fn a_destination_in_the_second_message_of_a_batch_is_on_record() {
    let ran = attack("second-message").program(&["192.0.2.1", "9"]).flag("--network", "local").run();
    assert_ne!(ran.tells("sent"), "2", "it went out");
    ran.violates(CLASS);
    assert_eq!(addresses(&ran), ["192.0.2.1:9"]);
}

#[test]
fn version_6_and_mapped_addresses_are_on_record() {
    let ran = python(
        "import socket, errno\n\
         for ip in ('2001:db8::1', '::ffff:192.0.2.1', '::1'):\n\
         \x20   s = socket.socket(socket.AF_INET6)\n\
         \x20   print(ip, errno.errorcode[s.connect_ex((ip, 80))])",
    )
    .run();
    ran.violates(CLASS);
    assert_eq!(addresses(&ran), ["[2001:db8::1]:80", "[::ffff:192.0.2.1]:80", "[::1]:80"]);
    assert_eq!(ran.out().matches("ENETUNREACH").count(), 3, "{}", ran.out());
}

#[test]
fn binding_a_port_is_a_network_violation_without_a_network() {
    let ran = python(
        "import socket\n\
         for ip in ('0.0.0.0', '127.0.0.1'):\n\
         \x20   try: socket.socket().bind((ip, 8080)); print('done')\n\
         \x20   except PermissionError: print('refused')",
    )
    .run();
    ran.violates(CLASS);
    assert_eq!(ran.out(), "refused\nrefused\n");
    assert_eq!(addresses(&ran), ["0.0.0.0:8080", "127.0.0.1:8080"]);
}

#[test]
fn a_name_being_looked_up_is_a_network_violation() {
    for network in ["none", "local"] {
        let ran = python(
            "import socket\n\
             try: print('done', socket.getaddrinfo('example.com', 80))\n\
             except socket.gaierror: print('unknown')",
        )
        .flag("--network", network)
        .run();
        ran.violates(CLASS);
        assert_eq!(ran.out(), "unknown\n", "network {network}");
        assert!(addresses(&ran).iter().all(|a| a.ends_with(":53")), "{:?}", addresses(&ran));
    }
}

#[test]
fn looking_up_the_own_names_is_harmless() {
    python(
        "import socket\n\
         for name in ('localhost', '127.0.0.1', '::1', socket.gethostname()):\n\
         \x20   assert socket.getaddrinfo(name, None), name\n\
         assert socket.gethostbyname('localhost') == '127.0.0.1'\n\
         socket.getfqdn()",
    )
    .run()
    .passes();
}

#[test]
fn looking_up_the_own_name_with_a_port_is_harmless() {
    // The C library connects datagram sockets to the results, with the port, to sort them: nothing is sent.
    python("import socket\nprint(socket.getaddrinfo('localhost', 8080))").run().passes();
}

/// Tries to reach a TCP port of the host's loopback by all its names, and says how it went.
fn reach(port: u16) -> String {
    format!(
        "import errno, socket\n\
         for family, ip in ((2, '127.0.0.1'), (2, '127.1.2.3'), (10, '::1'), (10, '::ffff:127.0.0.1')):\n\
         \x20   code = socket.socket(family).connect_ex((ip, {port}))\n\
         \x20   print(ip, errno.errorcode.get(code, 'done'))"
    )
}

#[test]
fn the_hosts_loopback_can_not_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the test's own");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("bound").port();

    let ran = python(&reach(port)).run();
    ran.violates(CLASS);
    assert_eq!(ran.out().matches("ENETUNREACH").count(), 4, "{}", ran.out());

    // With a loopback of its own it is in order to try, and nobody is there.
    let ran = python(&reach(port)).flag("--network", "local").run();
    ran.passes();
    assert_eq!(ran.out().matches("ECONNREFUSED").count(), 4, "{}", ran.out());

    let visit = listener.accept().map(|_| ()).map_err(|e| e.kind());
    assert_eq!(visit, Err(ErrorKind::WouldBlock), "a cell came through");
}

#[test]
fn the_hosts_datagram_ports_can_not_be_reached() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port of the test's own");
    socket.set_nonblocking(true).expect("a socket");
    let port = socket.local_addr().expect("bound").port().to_string();
    attack("send-out").program(&["127.0.0.1", &port]).run().violates(CLASS);
    attack("send-out").program(&["127.0.0.1", &port]).flag("--network", "local").run().passes();
    let mut buf = [0; 8];
    let got = socket.recv(&mut buf).map_err(|e| e.kind());
    assert_eq!(got, Err(ErrorKind::WouldBlock), "a cell came through");
}

#[test]
fn the_hosts_abstract_sockets_can_not_be_reached() {
    // The host's network has the host's abstract names in it: there it takes another layer to close them.
    let name = format!("hotcell-host-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a short name");
    let listener = UnixListener::bind_addr(&address).expect("a name of the test's own");
    listener.set_nonblocking(true).expect("a socket");
    for network in ["none", "local", "full"] {
        let ran = python(&format!(
            "import socket\n\
             s = socket.socket(socket.AF_UNIX)\n\
             try: s.connect('\\0{name}'); print('done')\n\
             except OSError as e: print('refused')"
        ))
        .flag("--network", network)
        .run();
        ran.passes();
        assert_eq!(ran.out(), "refused\n", "network {network}");
    }
    let visit = listener.accept().map(|_| ()).map_err(|e| e.kind());
    assert_eq!(visit, Err(ErrorKind::WouldBlock), "a cell came through");
}

#[test]
fn a_socket_of_the_hosts_elsewhere_can_not_be_reached() {
    let cell = python("");
    let path = cell.dir().join("input");
    let listener = UnixListener::bind(&path).expect("the test's own directory");
    listener.set_nonblocking(true).expect("a socket");
    let ran = python(&format!(
        "import socket\n\
         s = socket.socket(socket.AF_UNIX)\n\
         try: s.connect('{}'); print('done')\n\
         except OSError as e: print('refused')",
        path.display()
    ))
    .run();
    ran.passes();
    assert_eq!(ran.out(), "refused\n");
}

#[test]
fn a_socket_of_the_hosts_in_the_input_can_not_be_reached() {
    let input = Input::new(
        "import socket\n\
         for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n\
         \x20   name = '/src/empty/' + str(int(kind))\n\
         \x20   try: s = socket.socket(socket.AF_UNIX, kind); s.connect(name); s.send(b'out'); print('done')\n\
         \x20   except OSError as e: print('refused')\n\
         try: s = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]; s.sendto(b'out', '/src/empty/2'); print('done')\n\
         except OSError as e: print('refused')",
    );
    let place = |name: &str| input.path().join("empty").join(name);
    let listener = UnixListener::bind(place("1")).expect("the test's own directory");
    let datagrams = std::os::unix::net::UnixDatagram::bind(place("2")).expect("the test's own directory");
    listener.set_nonblocking(true).expect("a socket");
    datagrams.set_nonblocking(true).expect("a socket");
    for name in ["1", "2"] {
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(place(name), open).expect("the test's own");
    }
    let ran = input.python().run();
    let visit = listener.accept().map(|_| ()).map_err(|e| e.kind());
    assert_eq!(visit, Err(ErrorKind::WouldBlock), "a cell came through");
    let got = datagrams.recv(&mut [0; 8]).map_err(|e| e.kind());
    assert_eq!(got, Err(ErrorKind::WouldBlock), "a cell came through");
    assert_eq!(ran.out(), "refused\nrefused\nrefused\n");
}

#[test]
fn a_server_and_a_client_talk_over_the_cells_own_loopback() {
    let ran = python(&format!(
        "{SERVES_HELLO}\
         import socket\n\
         print(urlopen(f'http://localhost:{{server.server_port}}/').read())\n\
         udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         udp.bind(('127.0.0.1', 0))\n\
         udp.sendto(b'x', udp.getsockname())\n\
         udp.sendmsg([b'y'], [], 0, udp.getsockname())\n\
         print(udp.recv(9), udp.recv(9))\n\
         server.shutdown()"
    ))
    .flag("--network", "local")
    .run();
    ran.passes();
    assert_eq!(ran.out(), "b'hello'\nb'x' b'y'\n");
}

#[test]
fn the_unspecified_address_is_the_cells_own_loopback_too() {
    // As a client's destination, 0.0.0.0 and :: mean this host.
    python(
        "import socket\n\
         for family, ip in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):\n\
         \x20   server = socket.socket(family)\n\
         \x20   server.bind((ip, 0)); server.listen()\n\
         \x20   socket.socket(family).connect((ip, server.getsockname()[1]))",
    )
    .flag("--network", "local")
    .run()
    .passes();
}

#[test]
fn sockets_that_stay_in_the_cell_are_harmless() {
    let ran = python(
        "import asyncio, multiprocessing, os, socket, subprocess, threading\n\
         from multiprocessing import shared_memory\n\
         a, b = socket.socketpair()\n\
         a.sendmsg([b'x']); assert b.recv(1) == b'x'\n\
         d, e = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
         socket.send_fds(d, [b'fd'], [0])\n\
         for name in ('/work/s', '/tmp/s', '\\0mine'):\n\
         \x20   server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen()\n\
         \x20   client = socket.socket(socket.AF_UNIX); client.connect(name)\n\
         async def main():\n\
         \x20   p = await asyncio.create_subprocess_exec('echo', 'sub', stdout=-1)\n\
         \x20   print((await p.communicate())[0])\n\
         \x20   print(await asyncio.to_thread(lambda: 'thread'))\n\
         asyncio.run(main())\n\
         if __name__ == '__main__':\n\
         \x20   with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n\
         \x20   queue = multiprocessing.Queue(); queue.put(1); print(queue.get())\n\
         \x20   memory = shared_memory.SharedMemory(create=True, size=10); memory.close(); memory.unlink()\n\
         \x20   with multiprocessing.Manager() as manager: print(manager.list([3]))",
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "b'sub\\n'\nthread\n[1, 2]\n1\n[3]\n");
}
