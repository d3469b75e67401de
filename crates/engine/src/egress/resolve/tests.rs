//! Look-ups against servers of the test's own.

use std::net::TcpListener;
use std::sync::mpsc::channel;

use super::*;

/// Files and a port of the test's own.
struct Place {
    dir: PathBuf,
    resolver: Resolver,
}

impl Place {
    fn new(name: &str, hosts: &str, port: u16) -> Place {
        let dir = std::env::temp_dir().join(format!("hotcell-resolve-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory can be made");
        let (own, config) = (dir.join("hosts"), dir.join("resolv.conf"));
        std::fs::write(&own, hosts).expect("our own directory");
        std::fs::write(&config, "# a comment\nsearch example.org\nnameserver 127.0.0.1\n").expect("our own directory");
        Place { dir, resolver: Resolver { hosts: own, config, port } }
    }

    fn look_up(&self, name: &str) -> Result<Vec<String>, String> {
        let stop = Stop::new().expect("an eventfd");
        match self.resolver.look_up(name, &stop) {
            Ok(found) => Ok(found.iter().map(IpAddr::to_string).collect()),
            Err(Unknown::Because(why)) => Err(why),
            Err(Unknown::Stopped) => Err("stopped".into()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The question with an answer: `flags`, and one record.
fn answered(question: &[u8], flags: u16, data: &[u8]) -> Vec<u8> {
    let mut packet = question.to_vec();
    packet[2..4].copy_from_slice(&flags.to_be_bytes());
    if !data.is_empty() {
        packet[7] = 1;
        let kind = if data.len() == 4 { 1 } else { 28 };
        packet.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
        packet.extend(data);
    }
    packet
}

/// Four bytes of an A, sixteen of an AAAA.
fn wants(question: &[u8]) -> usize {
    if question[question.len() - 3] == 1 { 4 } else { 16 }
}

/// Answers each question with these packets until the test is over.
fn serve(answers: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        let mut packet = [0u8; 512];
        while let Ok((n, from)) = socket.recv_from(&mut packet) {
            for answer in answers(&packet[..n]) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    port
}

#[test]
fn the_hosts_file_comes_first() {
    let hosts = "192.0.2.1 one.example One # two.example\n2001:db8::1\tone.example\nbad line\n192.0.2.9 ninety.example";
    let place = Place::new("hosts", hosts, 1);
    assert_eq!(place.look_up("one.example"), Ok(vec!["192.0.2.1".into(), "2001:db8::1".into()]));
    assert_eq!(place.look_up("one"), Ok(vec!["192.0.2.1".into()]));
    assert!(place.look_up("nine").is_err_and(|why| why.contains("/etc/hosts")));
    let local = Ok(vec!["127.0.0.1".into(), "::1".into()]);
    assert_eq!((place.look_up("localhost"), place.look_up("a.localhost")), (local.clone(), local));
}

#[test]
fn a_server_is_asked_for_both_kinds() {
    let port = serve(|question| match wants(question) {
        4 => vec![answered(question, 0x8180, &[8, 8, 8, 8])],
        _ => vec![answered(question, 0x8180, &[0x26; 16])],
    });
    let six = Ipv6Addr::from([0x26; 16]).to_string();
    assert_eq!(Place::new("both", "", port).look_up("a.example"), Ok(vec!["8.8.8.8".into(), six]));
}

#[test]
fn other_packets_are_passed_over() {
    let port = serve(|question| {
        let mut other_id = answered(question, 0x8180, &vec![6; wants(question)]);
        other_id[1] ^= 1;
        let mut other_name = answered(question, 0x8180, &vec![7; wants(question)]);
        other_name[13] ^= 1;
        let good = answered(question, 0x8180, if wants(question) == 4 { &[8, 8, 8, 8] } else { &[] });
        vec![other_id, other_name, vec![0; 3], good]
    });
    assert_eq!(Place::new("other", "", port).look_up("a.example"), Ok(vec!["8.8.8.8".into()]));
}

#[test]
fn no_such_name_is_said_at_once() {
    let port = serve(|question| vec![answered(question, 0x8183, &[])]);
    assert_eq!(Place::new("none", "", port).look_up("a.example"), Err("there is no such name".into()));
}

#[test]
fn a_server_that_fails_is_asked_again() {
    let (asked, questions) = channel();
    let port = serve(move |question| {
        asked.send(()).expect("the test is there");
        vec![answered(question, 0x8182, &[])]
    });
    assert!(Place::new("fails", "", port).look_up("a.example").is_err_and(|why| why.contains("error")));
    assert_eq!(questions.try_iter().count(), 2 * TRIES);
}

#[test]
fn nobody_there_is_said() {
    let free = UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    assert!(Place::new("nobody", "", free).look_up("a.example").is_err());
}

#[test]
fn a_long_answer_comes_by_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let udp = UdpSocket::bind(("127.0.0.1", port)).expect("the same port");
    std::thread::spawn(move || {
        let mut packet = [0u8; 512];
        while let Ok((n, from)) = udp.recv_from(&mut packet) {
            let _ = udp.send_to(&answered(&packet[..n], 0x8380, &[]), from);
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut question = vec![0u8; n + 2];
            stream.read_exact(&mut question).expect("the question again");
            let good = answered(&question[2..], 0x8180, &vec![8; wants(&question)]);
            let whole = [&(good.len() as u16).to_be_bytes(), &good[..]].concat();
            // In two pieces.
            stream.write_all(&whole[..5]).expect("it reads");
            stream.write_all(&whole[5..]).expect("it reads");
        }
    });
    let found = Place::new("long", "", port).look_up("a.example").expect("an answer");
    assert_eq!((found.len(), found[0].as_str()), (2, "8.8.8.8"));
}

#[test]
fn the_end_of_the_run_ends_a_look_up() {
    // A server that takes questions and says nothing.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let place = Place::new("silent", "", silent.local_addr().expect("bound").port());
    let stop = Stop::new().expect("an eventfd");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| place.resolver.look_up("a.example", &stop));
        silent.recv(&mut [0; 512]).expect("a question");
        stop.set();
        assert!(matches!(asked.join().expect("no panic"), Err(Unknown::Stopped)));
    });
}
