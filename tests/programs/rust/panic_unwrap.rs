//! Panics on a line that does not parse.

use std::collections::HashMap;

const INVENTORY: &str = "apple=3\npear=12\nplum=many\n";

fn parse(text: &str) -> HashMap<&str, u32> {
    text.lines()
        .map(|line| {
            let (name, count) = line.split_once('=').expect("a line has an equals sign");
            println!("reading {name}");
            (name, count.parse().unwrap())
        })
        .collect()
}

fn main() {
    let caught = std::panic::catch_unwind(|| {
        let empty: Vec<i32> = Vec::new();
        empty.iter().max().copied().expect("there is a maximum")
    });
    println!("first panic was caught: {}", caught.is_err());

    let inventory = parse(INVENTORY);
    println!("this line is never reached: {}", inventory.len());
}
