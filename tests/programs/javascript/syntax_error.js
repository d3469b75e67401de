'use strict';

// A queue whose author forgot to close a bracket.

class Queue {
  constructor() {
    this.items = [];
  }

  push(item) {
    this.items.push(item);
    return this;
  }

  pop() {
    if (this.items.length === 0 {
      return null;
    }
    return this.items.shift();
  }
}

const queue = new Queue().push(1).push(2);
console.log('this line is never reached', queue.pop());
