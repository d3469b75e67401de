'use strict';

// A small to-do service and its client, talking over 127.0.0.1.

const http = require('node:http');
const { once } = require('node:events');

const todos = [];

const server = http.createServer(async (request, response) => {
  const send = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
    response.end(JSON.stringify(body));
  };
  if (request.url !== '/todos') return send(404, { error: 'not found' });
  if (request.method === 'GET') return send(200, todos);
  let body = '';
  for await (const chunk of request) body += chunk;
  todos.push({ id: todos.length + 1, ...JSON.parse(body) });
  return send(201, todos.at(-1));
});

function request(method, path, body) {
  return new Promise((resolve, reject) => {
    const { port } = server.address();
    const call = http.request({ host: '127.0.0.1', port, method, path }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve(`${method} ${path} ${response.statusCode} ${text}`);
    });
    call.on('error', reject);
    call.end(body && JSON.stringify(body));
  });
}

async function main() {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  console.log(await request('POST', '/todos', { title: 'write tests' }));
  console.log(await request('POST', '/todos', { title: 'drink tea' }));
  console.log(await request('GET', '/todos'));
  console.log(await request('GET', '/nothing'));
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/todos`);
  console.log('fetch:', answer.status, (await answer.json()).length);
  server.close();
}

main();
