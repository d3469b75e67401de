'use strict';

// Keeps a journal in the working directory and a copy in /tmp.

const fs = require('node:fs');
const path = require('node:path');
const os = require('node:os');

const JOURNAL = 'journal.txt';

function append(entry) {
  fs.appendFileSync(JOURNAL, `${entry}\n`);
}

function countWords(file) {
  const counts = {};
  for (const word of fs.readFileSync(file, 'utf8').toLowerCase().match(/[a-z]+/g)) {
    counts[word] = (counts[word] ?? 0) + 1;
  }
  return counts;
}

append('Rain in the morning, sun in the evening');
append('Sun all day');
append('Rain, rain, rain');

const counts = countWords(JOURNAL);
const top = Object.entries(counts).sort(([a, x], [b, y]) => y - x || a.localeCompare(b)).slice(0, 3);
console.log(top);

fs.mkdirSync('out', { recursive: true });
fs.writeFileSync(path.join('out', 'words.json'), JSON.stringify(Object.fromEntries(top), null, 2) + '\n');

const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'journal-'));
fs.copyFileSync(JOURNAL, path.join(copy, JOURNAL));
console.log('copied bytes:', fs.statSync(path.join(copy, JOURNAL)).size);
fs.rmSync(copy, { recursive: true });
console.log('copy is gone:', !fs.existsSync(copy));
