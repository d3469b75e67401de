'use strict';

// Sorts an inventory by several keys and prints it as a table.

const items = [
  { name: 'washer', stock: 120, price: 0.05 },
  { name: 'bolt', stock: 80, price: 0.25 },
  { name: 'gear', stock: 5, price: 14.5 },
  { name: 'anchor', stock: 80, price: 3.1 },
  { name: 'spring', stock: 5, price: 1.75 },
];

const by = (...keys) => (a, b) => {
  for (const [key, direction] of keys) {
    if (a[key] < b[key]) return -direction;
    if (a[key] > b[key]) return direction;
  }
  return 0;
};

function table(rows) {
  return rows
    .map(({ name, stock, price }) =>
      [name.padEnd(8), String(stock).padStart(5), price.toFixed(2).padStart(8)].join(' '))
    .join('\n');
}

console.log(table([...items].sort(by(['stock', -1], ['name', 1]))));

const groups = new Map();
for (const { name, stock } of items) {
  groups.set(stock, [...(groups.get(stock) ?? []), name].sort());
}
console.log([...groups].sort(([a], [b]) => a - b));
console.log('worth:', items.reduce((sum, i) => sum + i.stock * i.price, 0).toFixed(2));
