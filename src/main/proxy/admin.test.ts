// The connectivity test of a proxy: an endpoint that is called ready and is dead is found, also where connections miss it.

import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import type { Choice } from '../../proxy/choose.ts';
import type { Report } from '../../proxy/connectivity/report.ts';
import { startProxyAdmin } from './admin.ts';
import type { ProxyRole } from './part.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

test('proxy admin: one of two ready endpoints is dead and no connection met it -> named when endpoints are asked', async () => {
  const live = createServer((socket) => socket.on('error', () => {}).end());
  const dead = createServer();
  const [port, deadPort] = [await portOf(live), await portOf(dead)];
  closing.push(() => live.close());
  await new Promise((resolve) => dead.close(resolve));
  const backend = { address: '127.0.0.1', port, cluster: 'east' };
  const remote = { address: '127.0.0.1', port: deadPort, cluster: 'far', isBehindGateway: true };
  const choice = (...backends: object[]) =>
    ({ ports: [{ ip: '127.0.0.1', protocol: 'TCP', port, backends }], problems: [] }) as unknown as Choice;
  let present = choice(backend, { ...backend, port: deadPort });
  const proxy = {
    state: { has: () => true, choiceOf: () => present },
    ...{ notReady: () => '', status: () => ({}), lease: { holder: 'n1', announce: () => {}, problem: () => '' } },
  } as unknown as ProxyRole;
  const admin = await startProxyAdmin({
    ...{ listen: { host: '127.0.0.1', port: 0 }, metrics: createMetrics(), proxy },
    ...{ identify: async () => new Map(), zone: async () => 'clusterset.local' },
  });
  closing.push(() => admin.close());
  const problems = async (query: string) => {
    const answer = await fetch(`${admin.url}/connectivity?service=shop/checkout&count=3&lookup=off${query}`);
    return ((await answer.json()) as Report).problems;
  };
  expect(await problems('&endpoints=on')).toEqual([
    `endpoint 127.0.0.1:${deadPort} is called ready and does not answer: refused`,
  ]);
  expect(await problems('')).toEqual([]);
  present = choice(backend, remote);
  expect(await problems('&endpoints=on'), 'behind a gateway nobody can ask by himself').toEqual([]);
});
