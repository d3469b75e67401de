'use strict';

// Walks a linked list that somebody tied into a ring.

class ListNode {
  constructor(value, next = null) {
    this.value = value;
    this.next = next;
  }
}

function length(head) {
  let count = 0;
  for (let node = head; node !== null; node = node.next) count += 1;
  return count;
}

const tail = new ListNode(3);
const list = new ListNode(1, new ListNode(2, tail));
console.log('length:', length(list));

tail.next = list;
setTimeout(() => console.log('this timer never fires'), 100);
console.log('length:', length(list));
