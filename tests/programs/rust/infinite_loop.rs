//! A generator of random numbers that falls into a cycle without ever hitting the wanted one.

struct Lcg(u32);

impl Iterator for Lcg {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_224);
        Some(self.0)
    }
}

/// Counts the draws until a number is found; an odd one never comes.
fn draws_until(seed: u32, wanted: impl Fn(u32) -> bool) -> usize {
    Lcg(seed).take_while(|n| !wanted(*n)).count()
}

fn main() {
    println!("a multiple of 7 after {} draws", draws_until(2, |n| n % 7 == 0));
    println!("an odd number after {} draws", draws_until(2, |n| std::hint::black_box(n) % 2 == 1));
}
