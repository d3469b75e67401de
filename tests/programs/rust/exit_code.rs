//! Returns an error from main when a password is too weak.

use std::fmt;

struct Weak(Vec<&'static str>);

impl fmt::Debug for Weak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "weak password: {}", self.0.join(", "))
    }
}

fn check(password: &str) -> Result<(), Weak> {
    let rules: [(&'static str, fn(&str) -> bool); 3] = [
        ("shorter than 8", |p| p.len() >= 8),
        ("no digit", |p| p.chars().any(|c| c.is_ascii_digit())),
        ("no capital", |p| p.chars().any(char::is_uppercase)),
    ];
    let broken: Vec<_> = rules.iter().filter(|(_, holds)| !holds(password)).map(|(name, _)| *name).collect();
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Weak(broken))
    }
}

fn main() -> Result<(), Weak> {
    check("Correct4HorseBattery")?;
    println!("the first is strong");
    check("hunter2")?;
    println!("this line is never reached");
    Ok(())
}
