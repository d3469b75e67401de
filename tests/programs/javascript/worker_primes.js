'use strict';

// Counts primes in worker threads that share one counter.

const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');

function isPrime(n) {
  if (n < 2) return false;
  for (let d = 2; d * d <= n; d += 1) {
    if (n % d === 0) return false;
  }
  return true;
}

function start(low, high, shared) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: { low, high, shared } });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

async function main() {
  const shared = new SharedArrayBuffer(4);
  const ranges = [[0, 2500], [2500, 5000], [5000, 7500], [7500, 10000]];
  const counts = await Promise.all(ranges.map(([low, high]) => start(low, high, shared)));
  ranges.forEach(([low, high], i) => console.log(`${low}-${high}: ${counts[i]}`));
  console.log('total:', Atomics.load(new Int32Array(shared), 0));
}

if (isMainThread) {
  main();
} else {
  const { low, high, shared } = workerData;
  let count = 0;
  for (let n = low; n < high; n += 1) {
    if (isPrime(n)) count += 1;
  }
  Atomics.add(new Int32Array(shared), 0, count);
  parentPort.postMessage(count);
}
