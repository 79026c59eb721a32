// Real gRPC clients without a proxy against the discovery server.

import { afterEach, expect, test } from 'vitest';
import { serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { type ClientLanguage, startBackend, startGrpcClient } from './support/grpc-clients/grpc-clients.ts';
import { addImport, putEndpoints, startXdsTest } from './support/xds.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const target = 'xds:///checkout.shop.svc.clusterset.local';
const service = { name: 'checkout', portName: 'grpc' };

/** Backends of cluster east on 127.0.0.1 and 127.0.0.2, of cluster west on 127.0.0.3. */
async function setUp(language: ClientLanguage, dials = target) {
  const xds = await startXdsTest({ ports: { virtual: 0, ingress: 0 } });
  closing.push(() => xds.stop());
  const { port, ...a } = await startBackend('a', '127.0.0.1');
  const b = await startBackend('b', '127.0.0.2', port);
  const c = await startBackend('c', '127.0.0.3', port);
  for (const backend of [a, b, c]) closing.push(() => backend.stop());
  await addImport(xds.client, { ...service, port: 8080, trafficDistribution: 'PreferClose' });
  const put = (from: string, ...addresses: string[]) => putEndpoints(xds.client, service, from, { port, addresses });
  await put('east', '127.0.0.1', '127.0.0.2');
  await put('west', '127.0.0.3');
  const client = startGrpcClient(language, xds, dials);
  closing.push(() => client.stop());
  const names = async (count = 20) =>
    Object.keys(await client.calls(count))
      .sort()
      .join(' ');
  /** Waits until all calls are answered by these. Only calls to a server that just ended may fail on the way. */
  const settles = async (wanted: string, { mayFail = false } = {}) => {
    for (let i = 0; i < 100; i++) {
      const found = await names();
      if (found === wanted) return;
      if (found.includes('error') && !mayFail) throw new Error(found);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`calls are answered by ${await names()}, not by ${wanted}`);
  };
  return { xds, put, port, a, b, client, names, settles };
}

describeWith(['grpcio'], 'xds: gRPC clients', () => {
  test.each<ClientLanguage>(['javascript', 'python'])(
    '%s: resolves, balances, follows endpoints, fails over',
    async (language) => {
      expect(pathOf('grpcio')).toBeDefined();
      const { put, a, b, settles } = await setUp(language);
      await settles('a b');
      await put('east', '127.0.0.2');
      await settles('b');
      await put('east', '127.0.0.1', '127.0.0.2');
      await settles('a b');
      // They stay in the list: the client itself notices that no endpoint of the nearer priority answers.
      a.stop();
      b.stop();
      await settles('c', { mayFail: true });
    },
  );

  test.each<ClientLanguage>(['javascript', 'python'])(
    '%s: a target that does not exist -> fails at once; it comes -> answered; it goes -> fails again',
    async (language) => {
      const { xds, port, client } = await setUp(language, 'xds:///later.shop.svc.clusterset.local');
      const beganMs = performance.now();
      const [error] = Object.keys(await client.calls(1, { waits: false }));
      expect(error).toMatch(/^error: /);
      // A client waits 15 s for a listener that is merely missing.
      expect(performance.now() - beganMs).toBeLessThan(15_000);
      await addImport(xds.client, { name: 'later', portName: 'grpc', port: 8080 });
      const slice = { port, addresses: ['127.0.0.1'] };
      await putEndpoints(xds.client, { name: 'later', portName: 'grpc' }, 'east', slice);
      const until = async (wanted: RegExp) => {
        let said = '';
        for (let i = 0; i < 400 && !wanted.test(said); i++) {
          await new Promise((resolve) => setTimeout(resolve, 25));
          [said = ''] = Object.keys(await client.calls(1, { waits: false }));
        }
        expect(said).toMatch(wanted);
      };
      await until(/^a$/);
      await xds.client.delete(serviceImportType, { namespace: 'shop', name: 'later' });
      await until(/^error: /);
    },
  );

  test.each<ClientLanguage>(['javascript', 'python'])(
    '%s: a bad update -> refused, named, and the old one goes on',
    async (language) => {
      const { xds, put, settles, client } = await setUp(language);
      await settles('a b');
      const [place] = xds.role.service.views.places();
      const good = [...place!.set.entries('endpoints')][0]!;
      const gap = {
        cluster_name: good.name,
        endpoints: [{ priority: 3, load_balancing_weight: 1, locality: { zone: 'x' }, lb_endpoints: [] }],
      };
      place!.set.replace('shop/checkout', [{ type: 'endpoints', name: good.name, body: gap, causes: good.causes }]);
      for (let i = 0; i < 100 && xds.role.service.proxies.reports()[0]!.refused.length === 0; i++)
        await new Promise((resolve) => setTimeout(resolve, 20));
      expect(xds.role.service.proxies.reports()[0]!.refused).toMatchObject([
        { type: 'endpoints', isHeldAtLastGood: true },
      ]);
      expect(Object.keys(await client.calls(20)).sort()).toEqual(['a', 'b']);
      await put('east', '127.0.0.2');
      await settles('b');
      expect(xds.role.service.proxies.reports()[0]!.refused).toEqual([]);
    },
  );

  test.each<ClientLanguage>(['javascript', 'python'])(
    '%s: the server restarts -> calls go on, and nothing is sent again',
    async (language) => {
      const { xds, put, settles, client } = await setUp(language);
      await settles('a b');
      await xds.restart();
      for (let i = 0; i < 500 && xds.role.service.proxies.connected === 0; i++) {
        expect(Object.keys(await client.calls(2)).join()).not.toContain('error');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      await settles('a b');
      expect(await xds.metrics.text()).not.toMatch(/portolan_xds_responses_total\{/);
      await put('east', '127.0.0.1');
      await settles('a');
    },
  );
});
