import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { boundConnections, type ConnectionBounds } from './connection-bounds.ts';
import { createServer, request } from './node-http.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function open(bounds: ConnectionBounds): Promise<{ server: Server; port: number }> {
  const server = createServer((incoming, outgoing) => {
    if (incoming.url === '/slow') outgoing.write('begun');
    else outgoing.end('ok');
  });
  boundConnections(server, bounds);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(
    () => server.closeAllConnections(),
    () => new Promise((done) => server.close(done)),
  );
  return { server, port: (server.address() as AddressInfo).port };
}

async function dial(port: number, text = '', localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  closing.push(() => socket.destroy());
  await once(socket, 'connect');
  if (text !== '') socket.write(text);
  return socket;
}

function get(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, agent: false }, (incoming) => {
      incoming.resume();
      resolve(incoming.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });
}

test('connection bounds: all places are taken by connections that ask nothing -> the oldest gives way, requests are answered', async () => {
  const { port } = await open({ max: 20, perAddressMax: 100 });
  const idle: Socket[] = [];
  for (let count = 0; count < 20; count++) idle.push(await dial(port));
  const first = once(idle[0]!, 'close');
  for (let count = 0; count < 5; count++) expect(await get(port)).toBe(200);
  await first;
});

test('connection bounds: one address takes more than its share -> its own give way, those of others stay', async () => {
  const { port } = await open({ max: 100, perAddressMax: 10 });
  const other = await dial(port, '', '127.0.0.2');
  const own: Socket[] = [];
  for (let count = 0; count < 30; count++) own.push(await dial(port));
  await expect.poll(() => own.filter(({ closed }) => !closed).length).toBe(10);
  expect(own.slice(0, 20).every(({ closed }) => closed)).toBe(true);
  expect(other.closed).toBe(false);
});

test('connection bounds: all places are taken by requests in work -> they stay, the new connection is closed', async () => {
  const { port } = await open({ max: 3, perAddressMax: 100 });
  const busy: Socket[] = [];
  for (let count = 0; count < 3; count++) {
    const socket = await dial(port, 'GET /slow HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(socket, 'data');
    busy.push(socket);
  }
  const late = await dial(port);
  await once(late, 'close');
  expect(busy.every(({ closed }) => !closed)).toBe(true);
});
