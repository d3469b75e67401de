//! Statistics of the numbers on standard input.

use std::io::{self, BufRead};

#[derive(Default)]
struct Stats {
    values: Vec<f64>,
    skipped: usize,
}

impl Stats {
    fn read(input: impl BufRead) -> io::Result<Self> {
        let mut stats = Stats::default();
        for line in input.lines() {
            for word in line?.split_whitespace() {
                match word.parse() {
                    Ok(value) => stats.values.push(value),
                    Err(_) => stats.skipped += 1,
                }
            }
        }
        stats.values.sort_by(f64::total_cmp);
        Ok(stats)
    }

    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    fn median(&self) -> Option<f64> {
        let middle = self.values.len() / 2;
        match self.values.len() {
            0 => None,
            n if n % 2 == 0 => Some((self.values[middle - 1] + self.values[middle]) / 2.0),
            _ => Some(self.values[middle]),
        }
    }
}

fn main() -> io::Result<()> {
    let stats = Stats::read(io::stdin().lock())?;
    println!("count  {}", stats.values.len());
    println!("mean   {:.3}", stats.mean());
    println!("median {:?}", stats.median());
    println!("range  {:?} to {:?}", stats.values.first(), stats.values.last());
    println!("skipped {}", stats.skipped);
    Ok(())
}
