'use strict';

// Starts other programs and talks to them.

const { spawn, spawnSync, execFile } = require('node:child_process');
const { promisify } = require('node:util');

function pipe(command, args, input) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => { output += chunk; });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
    child.stdin.end(input);
  });
}

async function main() {
  const sorted = await pipe('sort', ['-n'], '10\n9\n100\n1\n');
  console.log('sorted:', sorted.output.trim().split('\n').join(' '));

  const { stdout } = await promisify(execFile)(process.execPath, ['-p', '6 * 7']);
  console.log('node says', stdout.trim());

  const failed = spawnSync('sh', ['-c', 'echo oops >&2; exit 5'], { encoding: 'utf8' });
  console.log('status:', failed.status, 'stderr:', failed.stderr.trim());

  await pipe('no-such-program', [], '').catch((error) => console.log('error:', error.code));
}

main();
