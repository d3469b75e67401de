'use strict';

// Buffers every frame of a film that has no end.

const FRAME = 1024 * 1024;

class Recorder {
  frames = [];

  record(number) {
    this.frames.push(Buffer.alloc(FRAME, (number % 255) + 1));
  }
}

const recorder = new Recorder();
console.log('recording');

let number = 0;
(function next() {
  recorder.record(number);
  number += 1;
  setImmediate(next);
})();
