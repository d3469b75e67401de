'use strict';

// Measures the depth of a tree that contains itself.

class Node {
  constructor(name, children = []) {
    this.name = name;
    this.children = children;
  }
}

function depth(node) {
  return 1 + Math.max(0, ...node.children.map(depth));
}

const leaf = new Node('leaf');
const root = new Node('root', [new Node('branch', [leaf]), leaf]);
console.log('depth:', depth(root));

leaf.children.push(root);
console.log('depth:', depth(root));
