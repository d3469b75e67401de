'use strict';

// Arithmetic with BigInt: factorials, modular powers and a primality test.

function factorial(n) {
  let result = 1n;
  for (let k = 2n; k <= n; k += 1n) result *= k;
  return result;
}

function powMod(base, exponent, modulus) {
  let result = 1n;
  for (base %= modulus; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * base) % modulus;
    base = (base * base) % modulus;
  }
  return result;
}

function isProbablePrime(n) {
  let d = n - 1n;
  let r = 0;
  while (d % 2n === 0n) {
    d /= 2n;
    r += 1;
  }
  return [2n, 3n, 5n, 7n, 11n, 13n].every((a) => {
    let x = powMod(a, d, n);
    if (x === 1n || x === n - 1n) return true;
    for (let i = 1; i < r; i += 1) {
      x = (x * x) % n;
      if (x === n - 1n) return true;
    }
    return false;
  });
}

console.log('30! =', factorial(30n).toString());
console.log('digits of 200!:', factorial(200n).toString().length);
console.log('2^1000 mod 10^9+7 =', powMod(2n, 1000n, 1_000_000_007n));
console.log('2^127-1 is prime:', isProbablePrime(2n ** 127n - 1n));
console.log('2^129-1 is prime:', isProbablePrime(2n ** 129n - 1n));
console.log('64 bits wrap to', BigInt.asIntN(64, 2n ** 63n));
