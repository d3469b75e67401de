//! The greatest common divisor and least common multiple of the arguments.

use std::env;
use std::fmt;
use std::process::ExitCode;

#[derive(Debug)]
enum UsageError {
    TooFew(usize),
    NotANumber(String),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UsageError::TooFew(n) => write!(f, "two numbers are needed, not {n}"),
            UsageError::NotANumber(text) => write!(f, "{text} is not a number"),
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn numbers(args: impl Iterator<Item = String>) -> Result<Vec<u64>, UsageError> {
    let numbers: Vec<u64> =
        args.map(|arg| arg.parse().map_err(|_| UsageError::NotANumber(arg))).collect::<Result<_, _>>()?;
    if numbers.len() < 2 {
        Err(UsageError::TooFew(numbers.len()))
    } else {
        Ok(numbers)
    }
}

fn main() -> ExitCode {
    match numbers(env::args().skip(1)) {
        Ok(numbers) => {
            println!("gcd{numbers:?} = {}", numbers.iter().copied().fold(0, gcd));
            println!("lcm{numbers:?} = {}", numbers.iter().fold(1, |a, &b| a / gcd(a, b) * b));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("usage: gcd A B...: {error}");
            ExitCode::from(2)
        }
    }
}
