//! A tiny HTTP server and its client, over 127.0.0.1.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

fn answer(path: &str) -> (&'static str, String) {
    match path.strip_prefix("/double/").map(str::parse::<i64>) {
        Some(Ok(n)) => ("200 OK", format!("{}", n * 2)),
        Some(Err(error)) => ("400 Bad Request", error.to_string()),
        None => ("404 Not Found", format!("no {path}")),
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let path = request.split_whitespace().nth(1).unwrap_or("/");
    let (status, body) = answer(path);
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let status = response.split(' ').nth(1).unwrap_or("???");
    let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok(format!("{status} {body}"))
}

fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let paths = ["/double/21", "/double/x", "/nothing"];
    let server = thread::spawn(move || -> io::Result<usize> {
        for stream in listener.incoming().take(paths.len()) {
            serve(stream?)?;
        }
        Ok(paths.len())
    });
    for path in paths {
        println!("{path} -> {}", get(address, path)?);
    }
    println!("served {}", server.join().expect("the server does not panic")?);
    Ok(())
}
