'use strict';

// Reads one JSON object per line from standard input and prints statistics.

const readline = require('node:readline');

async function main() {
  const scores = new Map();
  let broken = 0;

  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (!line.trim()) continue;
    try {
      const { player, points } = JSON.parse(line);
      scores.set(player, (scores.get(player) ?? 0) + points);
    } catch {
      broken += 1;
    }
  }

  for (const [player, points] of [...scores].sort((a, b) => b[1] - a[1])) {
    console.log(`${player.padEnd(6)} ${points}`);
  }
  console.log(JSON.stringify({ players: scores.size, broken }));
}

main();
