// `portolan proxy --mode userspace`: clusterset IPs inside 127.0.0.0/8 without root, with real servers behind them.

import { createSocket, type Socket } from 'node:dgram';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttp, get } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminTicketHeader } from '../src/base/admin-headers.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { requestToken } from '../src/kube/client/account-token.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { flowTicketAccount, ticketAudience, ticketLifetimeMs } from '../src/kube/objects/admin-ticket.ts';
import type { FlowPage } from '../src/proxy/flows/flow.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { until } from './support/dns-process.ts';
import { importOf, sliceOf } from './support/imports.ts';
import { takeLoopbackPart } from './support/loopback-part.ts';
import { type PortolanProcess, runPortolan, startPortolan } from './support/portolan.ts';

/** A network of this test process alone. */
const net = `127.${await takeLoopbackPart()}`;
const vip = `${net}.3.1`;

describe('proxy in userspace mode', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-userspace-'));
  const world = createRealWorld();
  const servers: Server[] = [];
  let api: ApiProcess;
  let client: Client;
  let proxy: PortolanProcess;
  let admin = '';

  const type = {
    group: 'discovery.k8s.io',
    version: 'v1',
    plural: 'endpointslices',
    kind: 'EndpointSlice',
    isNamespaced: true,
  };
  const imports = {
    ...type,
    group: 'multicluster.x-k8s.io',
    version: 'v1beta1',
    plural: 'serviceimports',
    kind: 'ServiceImport',
  };
  const serve = async (cluster: string, ports: readonly number[]) => {
    const wanted = sliceOf({
      service: 'web',
      cluster,
      addresses: ports.length > 0 ? ['127.0.0.1'] : [],
      ports: [{ name: 'http', port: ports[0] ?? 1 }],
    });
    const ref = { namespace: 'shop', name: wanted.metadata.name };
    await client.delete(type, ref).catch(() => {});
    await client.create(type, wanted);
  };
  const ask = () =>
    new Promise<string>((resolve) => {
      get({ host: vip, port: 8080, agent: false, timeout: 5000 }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.once('end', () => resolve(text));
      }).once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  const seen = async () => {
    const answers = new Set<string>();
    for (let each = 0; each < 40; each += 1) answers.add(await ask());
    return [...answers].sort();
  };
  const portOf = (says: string) =>
    new Promise<number>((resolve) => {
      const server = createHttp((_request, response) => void response.end(says));
      servers.push(server);
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });

  beforeAll(async () => {
    api = await startApi({ data: join(directory, 'home') });
    const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: api.kubeconfig });
    client = createClient(world.network.http(access), { world, userAgent: 'test' });
    const namespaces = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false };
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await client.create(imports, importOf('web', { ips: [vip], ports: [{ name: 'http', port: 8080 }] }));
    await serve('east', [await portOf('east')]);
    await serve('west', [await portOf('west')]);
    const flags = [
      '--mode',
      'userspace',
      '--range',
      `${net}.0.0/16`,
      '--kubeconfig',
      api.kubeconfig,
      '--node',
      'laptop',
    ];
    proxy = startPortolan(['proxy', ...flags]);
    await until('the proxy is ready', () => /^ready /m.test(proxy.out()));
    admin = /^admin (\S+)$/m.exec(proxy.out())![1]!;
  });

  afterAll(async () => {
    await proxy?.stop();
    client?.close();
    await api?.stop();
    for (const server of servers) server.close();
    rmSync(directory, { recursive: true, force: true });
  });

  test('requests to the address -> answered by both clusters; it says that it is for trying out', async () => {
    expect(await seen()).toEqual(['east', 'west']);
    expect(proxy.out()).toContain('meant for trying out');
  });

  test('an endpoint where nothing listens -> passed over; without any endpoint -> refused', async () => {
    const free = await portOf('x');
    await new Promise((resolve) => servers.pop()!.close(resolve));
    await serve('east', [free]);
    await until('only west answers', async () => JSON.stringify(await seen()) === '["west"]');
    await serve('west', []);
    await serve('east', []);
    await until('it is refused', async () => (await ask()) === 'ECONNREFUSED');
    await serve('east', [await portOf('east')]);
    await until('it is served again', async () => (await ask()) === 'east');
  });

  test('flows: each connection with its endpoint, one that was refused too, and its bytes at the end', async () => {
    const free = await portOf('x');
    await new Promise((resolve) => servers.pop()!.close(resolve));
    const audiences = [ticketAudience(admin)];
    const { token } = await requestToken(client, { ...flowTicketAccount, lifetimeMs: ticketLifetimeMs, audiences });
    const headers = { [adminTicketHeader]: token };
    const page = async (query: string) =>
      (await (await fetch(`${admin}/flows?${query}`, { headers })).json()) as FlowPage;
    const { next } = await page('');
    await serve('west', [free]);
    await until('both were tried', async () => {
      await ask();
      return (await page(`after=${next}&to=west&outcome=refused`)).flows.length > 0;
    });
    const { flows, from, node } = await page(`after=${next}&to=east`);
    expect({ from, node }).toMatchObject({ node: 'laptop' });
    expect(flows[0]).toMatchObject({ service: 'shop/web', address: vip, port: 8080, outcome: 'answered' });
    await until('it has ended', async () =>
      (await page(`after=${next}&to=east`)).flows.some(({ received }) => received !== undefined),
    );
    const ended = (await page(`after=${next}&to=east`)).flows.find(({ received }) => received !== undefined)!;
    expect(ended.received!.bytes).toBeGreaterThan(50);
    await serve('west', []);
  });

  test('an address outside the range -> named in /status, the rest is served', async () => {
    await client.create(imports, importOf('foreign', { ips: ['243.0.0.1'], ports: [{ name: 'http', port: 8080 }] }));
    const status = async () =>
      (await fetch(`${admin}/status`)).json() as Promise<{ problems: Record<string, string[]> }>;
    await until('it is named', async () => 'shop/foreign' in (await status()).problems);
    expect((await status()).problems['shop/foreign']).toEqual([expect.stringContaining('243.0.0.1 is outside')]);
    expect(await ask()).toBe('east');
  });

  test('UDP -> a client keeps its endpoint while that is there, and moves when it goes', async () => {
    const backends = await Promise.all(['one', 'two'].map(udpServer));
    const ports = [{ name: 'dns', port: 5353, protocol: 'UDP' }];
    await client.create(imports, importOf('dns', { ips: [`${net}.3.2`], ports }));
    const write = (chosen: readonly (typeof backends)[number][]) =>
      Promise.all(
        backends.map(async ({ port }, index) => {
          const addresses = chosen.some((each) => each.port === port) ? ['127.0.0.1'] : [];
          const wanted = sliceOf({
            service: 'dns',
            cluster: `c${index}`,
            addresses,
            ports: [{ name: 'dns', port, protocol: 'UDP' }],
          });
          // Updated in place: while there is no endpoint at all, the listener closes and forgets its clients.
          const ref = { namespace: 'shop', name: wanted.metadata.name };
          const body = { endpoints: wanted.endpoints };
          await client.create(type, wanted).catch(() => client.patch(type, ref, { kind: 'merge', body }));
        }),
      );
    await write(backends);
    const asking = createSocket('udp4');
    const answer = () =>
      new Promise<string>((resolve) => {
        const timer = setTimeout(() => resolve(''), 300);
        asking.once('message', (message) => {
          clearTimeout(timer);
          resolve(String(message));
        });
        asking.send('who', 5353, `${net}.3.2`);
      });
    await until('it answers', async () => (await answer()) !== '');
    const first = await answer();
    for (let each = 0; each < 10; each += 1) expect(await answer()).toBe(first);
    await write(backends.filter(({ says }) => says !== first));
    await until('it has moved', async () => !['', first].includes(await answer()));
    asking.close();
    for (const { socket } of backends) socket.close();
  });

  test('test connectivity at the proxy -> who answered', async () => {
    const { out } = await runPortolan(['test', 'connectivity', 'shop/web', '--count', '20', '--admin', admin]);
    expect(out).toMatch(/:8080: 20 connected\n {2}20 by 127\.0\.0\.1:\d+, cluster east\n/);
  });
});

function udpServer(says: string): Promise<{ readonly says: string; readonly port: number; readonly socket: Socket }> {
  const socket = createSocket('udp4');
  socket.on('message', (_message, from) => socket.send(says, from.port, from.address));
  return new Promise((resolve) =>
    socket.bind(0, '127.0.0.1', () => resolve({ says, port: socket.address().port, socket })),
  );
}
