'use strict';

// A calculator for reverse Polish notation given as arguments.

const { parseArgs } = require('node:util');

const OPERATORS = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  x: (a, b) => a * b,
  '/': (a, b) => a / b,
};

function evaluate(words) {
  const stack = [];
  for (const word of words) {
    if (word in OPERATORS) {
      const right = stack.pop();
      const left = stack.pop();
      stack.push(OPERATORS[word](left, right));
    } else {
      stack.push(Number(word));
    }
  }
  if (stack.length !== 1 || Number.isNaN(stack[0])) throw new Error('malformed expression');
  return stack[0];
}

const { values, positionals } = parseArgs({
  options: { digits: { type: 'string', default: '2' } },
  allowPositionals: true,
});

console.log(`${positionals.join(' ')} = ${evaluate(positionals).toFixed(Number(values.digits))}`);
