//! Starts other programs, feeds them, and looks at how they ended.

use std::error::Error;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

fn pipe(program: &str, args: &[&str], input: &str) -> Result<String, Box<dyn Error>> {
    let mut child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("no stdin")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{program} ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let sorted = pipe("sort", &["-n"], "30\n4\n100\n")?;
    println!("sorted: {:?}", sorted.lines().collect::<Vec<_>>());

    let count = pipe("wc", &["-w"], "one two three\n")?;
    println!("words: {}", count.trim());

    if let Err(error) = pipe("sh", &["-c", "cat > /dev/null; exit 6"], "ignored") {
        println!("error: {error}");
    }

    match Command::new("no-such-program").spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => println!("no-such-program: not found"),
        other => println!("surprise: {other:?}"),
    }

    let output = Command::new("sh").args(["-c", "echo $COLOR; echo note >&2"]).env("COLOR", "teal").output()?;
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(())
}
