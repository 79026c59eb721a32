// UDP of a cluster in another network, through its gateways by CONNECT-UDP: real Envoys in network namespaces that have the same Pod
// range and no route between them but the addresses of the gateways. Needs root.

import { afterEach, expect, test } from 'vitest';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { formatRouting, noRouting, routingAnnotation } from '../src/clusterset/rules/routing/routing.ts';
import { udpSessionsMax } from '../src/xds/gateways/udp-near-side.ts';
import { describeWith } from './support/counterparts.ts';
import {
  certified,
  clusterSet,
  connect,
  exportService,
  type GatewayCluster,
  gatewayPorts,
  introduce,
  nodeOf,
  startCluster,
  startGateway,
  startNode,
} from './support/gateway-world.ts';
import { endStarted } from './support/started.ts';
import { until } from './support/xds-served.ts';

afterEach(endStarted);

const pod = '10.70.2.1';
const protocol = 'UDP';
/** Of the node's Envoy in west, as its agent would have given them. */
const ways = { dns: 15_201, inner: 15_202 } as const;
const dns = { name: 'dns', ip: '243.9.0.5', port: 53, endpoint: pod, protocol } as const;
const inner = { name: 'inner', ip: '243.9.0.6', port: 53, endpoint: pod, exportTo: ['south'], protocol } as const;
const web = { name: 'web', ip: '243.9.0.1', port: 8080, endpoint: pod };

/** An import of a service of east, whose UDP port is carried. */
async function importUdp({ client }: GatewayCluster, name: keyof typeof ways, ip: string): Promise<void> {
  const udp = [{ cluster: 'east', port: 53, listenerPort: ways[name] }];
  const annotations = { [routingAnnotation]: formatRouting({ ...noRouting, udp }) };
  await client.create<ServiceImport>(serviceImportType, {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name, namespace: 'shop', annotations },
    spec: { type: 'ClusterSetIP', ips: [ip], ports: [{ port: 53, protocol }] },
  });
}

async function world({ gateways = 1 } = {}) {
  const east = await startCluster('east', { gateways });
  const west = await startCluster('west');
  const links = new Map([['west', connect(east, west)[0]]]);
  for (const each of [east, west]) await each.inside.ask({ do: 'serveUdp', name: each.id, address: pod, port: 53 });
  await east.inside.ask({ do: 'serve', name: 'web of east', address: pod, port: 8080 });
  for (const service of [dns, inner, web]) await exportService(east, service);
  await importUdp(west, 'dns', dns.ip);
  await importUdp(west, 'inner', inner.ip);
  await introduce(east, [west], links, gateways);
  for (let index = 0; index < gateways; index += 1) await startGateway(east, index);
  await startNode(west);
  await until('a datagram is answered', async () => ((await ask(west, 'first')) === 'east 5' ? true : undefined));
  return { east, west, address: links.get('west')! };
}

/** The socket of that name sends a datagram to the port of the node's Envoy. */
const ask = ({ inside }: GatewayCluster, name: string, { text = 'hello', port = ways.dns as number } = {}) =>
  inside.ask({ do: 'askUdp', name, address: '127.0.0.1', port, text }) as Promise<string>;

describeWith(['envoy', 'ip', 'nft'], 'gateways: UDP of another network', () => {
  test('exported to all, to others alone, then to nobody -> answered, never, and within 10 s no longer; TCP goes on', async () => {
    const { east, west } = await world();
    expect(await ask(west, 'first', { text: 'x'.repeat(8000) })).toBe('east 8000');
    expect((await ask(west, 'first', { text: 'send 8000' })).length).toBe(8000);
    expect(await ask(west, 'second', { port: ways.inner })).toBe('none');
    await east.client.delete(serviceExportType, { namespace: 'shop', name: 'dns' });
    const startMs = performance.now();
    await until('an old session has ended', async () => ((await ask(west, 'first')) === 'none' ? true : undefined));
    expect(performance.now() - startMs).toBeLessThan(10_000);
    expect(await ask(west, 'third')).toBe('none');
    expect(await west.inside.ask({ do: 'get', to: `http://${web.ip}:${web.port}/` })).toBe('web of east');
  });

  test('callers by another protocol, name or service than they may -> refused', async () => {
    const { west, address } = await world();
    const pair = await certified(west, nodeOf('west'));
    const to = { address, port: gatewayPorts[0], sni: `west.${clusterSet}`, ...pair };
    const by = (authority: string, protocol?: string, target?: string) =>
      west.inside.ask({ do: 'connect', ...to, authority, ...(protocol && { protocol }), ...(target && { target }) });
    const [own, other] = ['dns', 'inner'].map((name) => `udp.${name}.shop.svc.clusterset.local:53`) as [string, string];
    expect(await by(own, 'connect-udp')).toBe('200');
    const wrong: [authority: string, protocol?: string, target?: string][] = [
      [other, 'connect-udp'],
      [own, 'connect-udp', other],
      [own.replace(':53', ':54'), 'connect-udp'],
      [`${pod}:53`, 'connect-udp'],
      [`${dns.ip}:53`, 'connect-udp'],
      [own],
      [own, 'websocket'],
      [`${web.ip}:${web.port}`, 'connect-udp'],
      ['web.shop.svc.clusterset.local:8080', 'connect-udp'],
    ];
    for (const asked of wrong) expect([asked, await by(...asked)]).toEqual([asked, expect.stringMatching(/^4/)]);
  });

  test('one of two gateways is killed, and more sessions than a listener has -> others are used, and the rest gets nothing', async () => {
    const { east, west } = await world({ gateways: 2 });
    east.envoys[0]!.stop();
    for (const name of ['first', 'a', 'b', 'c'])
      await until(`${name} is answered`, async () => ((await ask(west, name)) === 'east 5' ? true : undefined));
    const to = { address: '127.0.0.1', port: ways.dns };
    const answered = await west.inside.ask({ do: 'manyUdp', ...to, count: udpSessionsMax + 200 });
    expect(answered).toBeLessThanOrEqual(udpSessionsMax);
    expect(answered).toBeGreaterThan(udpSessionsMax * 0.9);
    expect(await ask(west, 'a')).toBe('east 5');
  });
});
