import { createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { formatKubeconfig } from '../../home/security/kubeconfig.ts';
import { keptListen } from './kept-port.ts';

const any = { host: '127.0.0.1', port: 0 };
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function takenPort(): Promise<number> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}

async function worldWith(port: number) {
  const world = new Simulation({ seed: 1 }).world('up');
  const pem = { certificateAuthority: 'a', clientCertificate: 'b', clientKey: 'c' };
  const text = formatKubeconfig({ server: `https://127.0.0.1:${port}`, name: 'home', ...pem });
  await world.disk.write('/data/admin.kubeconfig', Buffer.from(text));
  return world;
}

test('up: any port, and one from before that is free -> that one; it is taken -> any', async () => {
  const port = await takenPort();
  const world = await worldWith(port);
  expect(await keptListen(world, '/data', { listen: any, advertise: undefined })).toEqual(any);
  await new Promise((resolve) => servers.pop()!.close(resolve));
  expect(await keptListen(world, '/data', { listen: any, advertise: undefined })).toEqual({ ...any, port });
  const advertised = { listen: any, advertise: { host: 'east', port: 0 } };
  expect(await keptListen(world, '/data', advertised)).toEqual({ ...any, port });
});

test('up: a port that is given, one in front, no kubeconfig or a strange one -> as the flags say', async () => {
  const world = await worldWith(6443);
  const given = { host: '127.0.0.1', port: 7443 };
  expect(await keptListen(world, '/data', { listen: given, advertise: undefined })).toEqual(given);
  expect(await keptListen(world, '/data', { listen: any, advertise: { host: 'east', port: 443 } })).toEqual(any);
  expect(await keptListen(world, '/none', { listen: any, advertise: undefined })).toEqual(any);
  await world.disk.write('/data/admin.kubeconfig', Buffer.from('apiVersion: v1\n'));
  expect(await keptListen(world, '/data', { listen: any, advertise: undefined })).toEqual(any);
});
