//! Remembers every page it ever visited.

use std::collections::BTreeMap;

const PAGE: usize = 1 << 20;

#[derive(Default)]
struct Crawler {
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Crawler {
    fn visit(&mut self, number: u64) -> u64 {
        let fill = (number % 251) as u8 + 1;
        self.pages.insert(number, vec![fill; PAGE]);
        number + u64::from(fill)
    }
}

fn main() {
    let mut crawler = Crawler::default();
    let mut next = 1;
    println!("crawling");
    loop {
        next = crawler.visit(next);
    }
}
