'use strict';

// Saves settings in the first place that lets it.

const fs = require('node:fs');

function save(settings, candidates) {
  const text = Object.entries(settings).map(([key, value]) => `${key}=${value}\n`).join('');
  for (const file of candidates) {
    try {
      fs.writeFileSync(file, text);
      return file;
    } catch {
      // Try the next one.
    }
  }
  throw new Error('nowhere to save');
}

const where = save({ theme: 'dark', tabs: 4 }, ['/etc/x', 'settings.conf']);
console.log('saved to', where);
console.log(fs.readFileSync(where, 'utf8').trim());
