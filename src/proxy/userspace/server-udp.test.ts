import { createSocket, type Socket } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { createRealWorld } from '../../base/real/world.ts';
import { Balancer } from './balancer.ts';
import { listenUdp } from './server-udp.ts';

const open: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function bound(): Promise<Socket> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  open.push(() => socket.close());
  await once(socket, 'listening');
  return socket;
}

/** A listener with one backend that echoes, and its own socket. */
async function start() {
  const backend = await bound();
  backend.on('message', (message, from) => {
    if (from.port !== 0) backend.send(message, from.port, from.address);
  });
  const { port } = backend.address();
  const backends = [{ address: '127.0.0.1', port, cluster: 'east' }];
  const choice = { ip: '127.0.0.1', family: 'IPv4', protocol: 'UDP', port: 0, backends, affinitySeconds: 0 } as const;
  const clients: number[] = [];
  let socket: Socket | undefined;
  const onSocket = (message: unknown) => {
    socket ??= (message as { socket: Socket }).socket;
  };
  subscribe('udp.socket', onSocket);
  const listener = await listenUdp({
    ip: '127.0.0.1',
    port: 0,
    balancer: new Balancer(choice, createRealWorld()),
    onConnection: (_, clientPort) => clients.push(clientPort),
  });
  unsubscribe('udp.socket', onSocket);
  open.push(() => listener.close());
  return { socket: socket!, clients };
}

test('userspace UDP: a packet from port 0, which cannot be answered -> dropped, and the next client is served', async () => {
  const { socket, clients } = await start();
  socket.emit('message', Buffer.from('hostile'), { address: '127.0.0.1', port: 0, family: 'IPv4', size: 7 });
  expect(clients).toEqual([]);
  const client = await bound();
  client.send('hello', socket.address().port, '127.0.0.1');
  const [reply] = (await once(client, 'message')) as [Buffer];
  expect([reply.toString(), clients]).toEqual(['hello', [client.address().port]]);
});
