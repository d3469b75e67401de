'use strict';

const { Cart, OutOfStock } = require('./cart');
const prices = require('./prices.json');

const cart = new Cart(prices);
cart.add('coffee', 2);
cart.add('cake');

try {
  cart.add('unicorn');
} catch (error) {
  if (!(error instanceof OutOfStock)) throw error;
  console.log('sorry:', error.message);
}

console.log(cart.toString());
console.log('cached:', require('./cart').Cart === Cart);
