//! Keeps a ledger in a file of the working directory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

fn append(path: &Path, account: &str, amount: i64) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{account};{amount}")
}

fn balances(path: &Path) -> io::Result<BTreeMap<String, i64>> {
    let mut sums = BTreeMap::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        let Some((account, amount)) = line.split_once(';') else { continue };
        let amount: i64 = amount.parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        *sums.entry(account.to_owned()).or_default() += amount;
    }
    Ok(sums)
}

fn main() -> io::Result<()> {
    let ledger = Path::new("ledger.csv");
    for (account, amount) in [("rent", -900), ("salary", 2500), ("food", -120), ("food", -80)] {
        append(ledger, account, amount)?;
    }

    let sums = balances(ledger)?;
    let mut report = BufWriter::new(File::create("balances.txt")?);
    for (account, sum) in &sums {
        println!("{account:<8}{sum:>7}");
        writeln!(report, "{account}\t{sum}")?;
    }
    report.flush()?;

    let backup = std::env::temp_dir().join("ledger.bak");
    let copied = fs::copy(ledger, &backup)?;
    fs::remove_file(&backup)?;
    println!("backed up {copied} bytes, left: {}", sums.values().sum::<i64>());
    Ok(())
}
