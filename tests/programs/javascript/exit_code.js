'use strict';

// Validates e-mail addresses given as arguments; the exit code counts the bad ones.

const pattern = /^[^\s@]+@[^\s@]+\.[a-z]{2,}$/i;

function check(addresses) {
  const bad = addresses.filter((address) => !pattern.test(address));
  for (const address of addresses) {
    console.log(`${bad.includes(address) ? 'bad ' : 'good'} ${address}`);
  }
  return bad.length;
}

const bad = check(process.argv.slice(2));
if (bad > 0) console.error(`${bad} bad`);

process.on('exit', (code) => console.log(`leaving with ${code}`));
process.exitCode = bad;
