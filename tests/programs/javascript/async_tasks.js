'use strict';

// Runs tasks with limited concurrency, with retries, and settles them all.

const { setTimeout: sleep } = require('node:timers/promises');

let running = 0;
let peak = 0;

async function task(id, attempt) {
  running += 1;
  peak = Math.max(peak, running);
  await sleep(5);
  running -= 1;
  if (id % 4 === 3 && attempt === 1) throw new Error(`task ${id} is flaky`);
  if (id === 6) throw new Error(`task ${id} is broken`);
  return id * id;
}

async function retry(id, attempts) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await task(id, attempt);
    } catch (error) {
      if (attempt === attempts) throw error;
    }
  }
}

async function pool(ids, size) {
  const queue = [...ids];
  const results = [];
  const worker = async () => {
    while (queue.length > 0) {
      const id = queue.shift();
      const [outcome] = await Promise.allSettled([retry(id, 2)]);
      results[id] = outcome;
    }
  };
  await Promise.all(Array.from({ length: size }, worker));
  return results;
}

pool([0, 1, 2, 3, 4, 5, 6, 7], 3).then((results) => {
  results.forEach((r, id) => console.log(id, r.status, r.value ?? r.reason.message));
  console.log('peak:', peak);
});
