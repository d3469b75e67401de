'use strict';

class OutOfStock extends Error {}

class Cart {
  #lines = new Map();

  constructor(prices) {
    this.prices = prices;
  }

  add(item, count = 1) {
    if (!(item in this.prices)) throw new OutOfStock(`no ${item} here`);
    this.#lines.set(item, (this.#lines.get(item) ?? 0) + count);
  }

  get total() {
    let sum = 0;
    for (const [item, count] of this.#lines) sum += this.prices[item] * count;
    return sum;
  }

  toString() {
    const lines = [...this.#lines].map(([item, count]) => `${count} x ${item}`);
    return `${lines.join(', ')}: ${this.total.toFixed(2)}`;
  }
}

module.exports = { Cart, OutOfStock };
