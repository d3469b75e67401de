'use strict';

// Looks users up in a directory; nobody handles the promise that fails.

const directory = new Map([
  ['ada', 'ada@example.com'],
  ['alan', 'alan@example.com'],
]);

class UnknownUser extends Error {
  constructor(name) {
    super(`unknown user ${name}`);
    this.name = 'UnknownUser';
  }
}

async function lookup(name) {
  await null;
  if (!directory.has(name)) throw new UnknownUser(name);
  return directory.get(name);
}

async function main() {
  console.log(await lookup('ada'));
  console.log(await lookup('grace'));
}

main();
