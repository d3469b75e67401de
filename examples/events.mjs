// A day in a bakery, as events on a clock that runs a thousand times too fast.
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const bakery = new EventEmitter();
const shelf = [];

bakery.on('baked', (bread) => {
  shelf.push(bread);
  console.log(`the oven opens: ${bread}`);
});
bakery.on('customer', (name) => {
  console.log(`${name} gets ${shelf.shift() ?? 'nothing, and sighs'}`);
});

async function oven(breads) {
  for (const bread of breads) {
    await sleep(20);
    bakery.emit('baked', bread);
  }
}

async function street(names) {
  await once(bakery, 'baked');
  for (const name of names) {
    await sleep(150);
    bakery.emit('customer', name);
  }
}

await Promise.all([oven(['rye', 'sourdough', 'baguette']), street(['Ada', 'Grace', 'Linus', 'Alan'])]);
console.log(`closing with ${shelf.length} loaves left`);
