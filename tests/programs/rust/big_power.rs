//! An unsigned integer without bounds, in base one billion.

use std::fmt;
use std::ops::{AddAssign, MulAssign};

const BASE: u64 = 1_000_000_000;

#[derive(Clone, PartialEq)]
struct BigUint(Vec<u32>);

impl From<u32> for BigUint {
    fn from(n: u32) -> Self {
        let mut limbs = vec![(u64::from(n) % BASE) as u32];
        if u64::from(n) >= BASE {
            limbs.push((u64::from(n) / BASE) as u32);
        }
        BigUint(limbs)
    }
}

impl MulAssign<u32> for BigUint {
    fn mul_assign(&mut self, factor: u32) {
        let mut carry = 0;
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = (product % BASE) as u32;
            carry = product / BASE;
        }
        while carry > 0 {
            self.0.push((carry % BASE) as u32);
            carry /= BASE;
        }
    }
}

impl AddAssign<&BigUint> for BigUint {
    fn add_assign(&mut self, other: &BigUint) {
        self.0.resize(self.0.len().max(other.0.len()) + 1, 0);
        let mut carry = 0;
        for (i, limb) in self.0.iter_mut().enumerate() {
            let sum = u64::from(*limb) + u64::from(other.0.get(i).copied().unwrap_or(0)) + carry;
            *limb = (sum % BASE) as u32;
            carry = sum / BASE;
        }
        while self.0.len() > 1 && self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

impl fmt::Display for BigUint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, rest) = self.0.split_last().expect("there is always a limb");
        write!(f, "{last}")?;
        rest.iter().rev().try_for_each(|limb| write!(f, "{limb:09}"))
    }
}

fn main() {
    let mut power = BigUint::from(1);
    (0..200).for_each(|_| power *= 2);
    println!("2^200 = {power}");

    let mut factorial = BigUint::from(1);
    (2..=40).for_each(|k| factorial *= k);
    println!("40! = {factorial}");

    let (mut a, mut b) = (BigUint::from(0), BigUint::from(1));
    for _ in 0..250 {
        a += &b;
        std::mem::swap(&mut a, &mut b);
    }
    println!("fib(250) = {a}");
    println!("u32::MAX = {}, u128::MAX = {}", BigUint::from(u32::MAX), u128::MAX);
}
