// A real Envoy and the choice of endpoints: shares by weights, and endpoints that take no connections.

import { afterEach, expect, test } from 'vitest';
import { serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { describeWith } from './support/counterparts.ts';
import { endStarted } from './support/started.ts';
import { addImport, putEndpoints } from './support/xds.ts';
import { openNamespace, serve, settled, until } from './support/xds-served.ts';

afterEach(endStarted);

describeWith(['envoy', 'ip', 'nft'], 'xds: who serves', () => {
  async function start(spec: object, annotations: Record<string, string> = {}) {
    const inside = openNamespace();
    const xds = await serve(inside, 'east');
    const service = { name: 'checkout' };
    await addImport(xds.client, { ...service, ips: ['241.0.0.7'], port: 80 });
    const ref = { namespace: 'shop', name: 'checkout' };
    await xds.client.patch(serviceImportType, ref, { kind: 'merge', body: { metadata: { annotations }, spec } });
    const put = (cluster: string, ...addresses: string[]) =>
      putEndpoints(xds.client, service, cluster, { port: 8080, addresses });
    const startEnvoy = async () => {
      const bootstrap = await xds.bootstrap('sidecar', 'web', { isClustersetProxied: true });
      inside.startEnvoy(xds.folder, 'sidecar', bootstrap);
      await settled(xds, 'sidecar~east~web', 2);
    };
    const get = () => inside.ask({ do: 'get', to: 'http://241.0.0.7/' }) as Promise<string>;
    return { inside, put, startEnvoy, get };
  }

  test('weights on an import -> requests go by them, whatever the numbers of endpoints', async () => {
    const routing = JSON.stringify({
      g: [
        [['east'], 90],
        [['west'], 10],
      ],
    });
    const { inside, put, startEnvoy, get } = await start({}, { 'portolan.dev/routing': routing });
    for (const host of [1, 2, 3])
      await inside.ask({ do: 'serve', name: host === 1 ? 'east' : 'west', address: `10.70.0.${host}`, port: 8080 });
    await put('east', '10.70.0.1');
    await put('west', '10.70.0.2', '10.70.0.3');
    await startEnvoy();
    const seen: Record<string, number> = {};
    const count = 1500;
    for (let at = 0; at < count; at += 1) {
      const name = await get();
      seen[name] = (seen[name] ?? 0) + 1;
    }
    expect(Object.keys(seen).sort()).toEqual(['east', 'west']);
    expect(Math.abs(seen['east']! / count - 0.9)).toBeLessThan(0.03);
  });

  test('nothing listens on the only near endpoint, which is called ready -> left after a few failures, used again when it is back', async () => {
    const { inside, put, startEnvoy, get } = await start({ trafficDistribution: 'PreferClose' });
    await inside.ask({ do: 'serve', name: 'west', address: '10.70.0.2', port: 8080 });
    await put('east', '10.70.0.1');
    await put('west', '10.70.0.2');
    await startEnvoy();
    let failures = 0;
    await until('another cluster answers', async () => {
      if ((await get()) === 'west') return true;
      failures += 1;
      return undefined;
    });
    expect(failures).toBeLessThan(10);
    await inside.ask({ do: 'serve', name: 'east', address: '10.70.0.1', port: 8080 });
    await until('it is used again', async () => ((await get()) === 'east' ? true : undefined));
  });
});
