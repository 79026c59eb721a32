// Services of a cluster in another network, through its gateways: real Envoys in network namespaces that all have the same Pod
// range, with no route between them but the address of the gateways. Needs root.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import type { Credentials } from '../src/base/x509/certificates.ts';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { mayUse } from '../src/clusterset/kinds/service-shard.ts';
import { healthPath, healthPort } from '../src/clusterset/rules/networks/listener-ports.ts';
import { remoteEndpoint } from '../src/clusterset/rules/networks/remote-endpoint.ts';
import { virtualAddressesLabel } from '../src/clusterset/rules/networks/virtual-endpoints.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { importOf, ProxyRules, sliceOf } from './support/gateway-rules.ts';
import {
  adminPort,
  certified,
  clusterSet,
  connect,
  exportService,
  type GatewayCluster,
  gatewayPorts,
  introduce,
  limitExport,
  nodeOf,
  signingOf,
  startCluster,
  startGateway,
  startNode,
} from './support/gateway-world.ts';
import { portolan } from './support/portolan.ts';
import { endStarted } from './support/started.ts';
import { addImport } from './support/xds.ts';
import { pause, until } from './support/xds-served.ts';

afterEach(endStarted);

const pod = '10.70.2.1';
const web = { name: 'web', ip: '243.9.0.1', port: 8080, endpoint: pod };
const db = { name: 'db', ip: '243.9.0.2', port: 5432, endpoint: pod, exportTo: ['south'] };
const echo = { name: 'echo', ip: '243.9.0.3', port: 7000, endpoint: pod };
const log = { name: 'log', ip: '243.9.0.4', port: 7000, endpoint: pod, exportTo: ['south', 'west'] };
const streamsEndMs = 10_000;

interface World {
  readonly east: GatewayCluster;
  readonly west: GatewayCluster;
  readonly south: GatewayCluster;
  readonly links: ReadonlyMap<string, string>;
  readonly gateways: number;
}

async function world({ gateways = 1, times = {} } = {}): Promise<World> {
  const east = await startCluster('east', { gateways, times });
  const west = await startCluster('west', { times });
  const south = await startCluster('south', { times });
  const links = new Map([west, south].map((caller) => [caller.id, connect(east, caller)[0]]));
  // The same address in each cluster: an answer of another one than east would show a connection that stayed at home.
  for (const each of [east, west, south])
    await each.inside.ask({ do: 'serve', name: `web of ${each.id}`, address: pod, port: 8080 });
  await east.inside.ask({ do: 'serve', name: 'db of east', address: pod, port: 5432 });
  await east.inside.ask({ do: 'echo', address: pod, port: 7000 });
  for (const service of [web, db, echo, log]) await exportService(east, service);
  await introduce(east, [west, south], links, gateways);
  for (let index = 0; index < gateways; index += 1) await startGateway(east, index);
  for (const each of [west, south]) await startNode(each);
  for (const each of [west, south]) await answers(each, web, 'web of east');
  return { east, west, south, links, gateways };
}

type Target = { readonly ip: string; readonly port: number };

const get = (from: GatewayCluster, { ip, port }: Target) =>
  from.inside.ask({ do: 'get', to: `http://${ip}:${port}/` }) as Promise<string>;
const answers = (from: GatewayCluster, to: Target, wanted: string) =>
  until(`${from.id} gets ${wanted}`, async () => ((await get(from, to)) === wanted ? true : undefined));

const hold = ({ inside }: GatewayCluster, name: string, { ip, port }: Target) =>
  inside.ask({ do: 'holdPlain', name, address: ip, port });
const held = async ({ inside }: GatewayCluster, name: string) =>
  (await inside.ask({ do: 'held', name })) as { echoes: number; isClosed: boolean };

async function closedWithinMs(from: GatewayCluster, name: string): Promise<number> {
  const startMs = performance.now();
  await until(`${name} of ${from.id} is closed`, async () => ((await held(from, name)).isClosed ? true : undefined));
  return performance.now() - startMs;
}

async function goesOn(from: GatewayCluster, name: string): Promise<boolean> {
  const { echoes } = await held(from, name);
  await pause(1000);
  const after = await held(from, name);
  return !after.isClosed && after.echoes > echoes;
}

const authority = ({ ip, port }: Target) => `${ip}:${port}`;

const inNamespace = async ({ inside }: GatewayCluster, words: readonly string[]): Promise<string> =>
  (await promisify(execFile)(pathOf('ip')!, ['netns', 'exec', inside.name, ...words])).stdout;

/** As a person or a unit does it before the Envoy is stopped. */
const drain = (cluster: GatewayCluster, index: number, ...more: string[]) =>
  inNamespace(cluster, [portolan, 'xds', 'drain', '--admin', `127.0.0.1:${adminPort(index)}`, '--for', '20', ...more]);

describeWith(['envoy', 'ip', 'nft'], 'gateways: a service in another network', () => {
  test('exported to all, to one, to nobody -> reached by those alone, in the other cluster, by clusterset IP', async () => {
    const { east, west, south } = await world();
    await answers(south, db, 'db of east');
    expect(await get(west, db)).toMatch(/^failed/);
    expect(await get(west, { ip: '243.9.0.9', port: 8080 })).toMatch(/^failed/);
    await east.client.delete(serviceExportType, { namespace: 'shop', name: 'web' });
    await pause(1000);
    expect(await get(west, web)).toMatch(/^failed/);
  });

  test('what the node proxy asks: one of two gateways, none, an unknown cluster -> 200, 503 within 3 s, 404', async () => {
    const { east, west } = await world({ gateways: 2 });
    const health = (id: string) =>
      west.inside.ask({ do: 'get', to: `http://127.0.0.1:${healthPort}${healthPath(id)}` }) as Promise<string>;
    const isReached = async () => !(await health('east')).startsWith('failed');
    expect(await isReached()).toBe(true);
    expect(await health('south')).toBe('failed: 404');
    east.envoys[0]!.stop();
    await pause(3000);
    expect(await isReached()).toBe(true);
    east.envoys[1]!.stop();
    await pause(3000);
    expect(await health('east')).toBe('failed: 503');
    await startGateway(east, 1);
    await until('it is reached again', async () => ((await isReached()) ? true : undefined));
  });

  test('callers with other certificates, names and wishes -> refused, each with its reason', async () => {
    const { west, south, links } = await world();
    const to = { address: links.get('west')!, port: gatewayPorts[0] };
    const ask = (pair: Credentials | undefined, wanted: string, as = 'west') =>
      west.inside.ask({ do: 'connect', ...to, sni: `${as}.${clusterSet}`, authority: wanted, ...pair });
    const own = await certified(west, nodeOf('west'));
    expect(await ask(own, authority(web))).toBe('200');
    expect(await ask(own, 'web.shop.svc.clusterset.local:8080')).toBe('200');
    // Not exported to it; not exported at all; an address in place of a service; another port.
    expect(await ask(own, authority(db))).toBe('403');
    expect(await ask(own, authority({ ip: '243.9.0.9', port: 8080 }))).toBe('403');
    expect(await ask(own, `${pod}:8080`)).toBe('403');
    expect(await ask(own, '127.0.0.1:19100')).toBe('403');
    expect(await ask(own, authority({ ...web, port: 8081 }))).toBe('403');
    // Identities: none, another member's name with its own root, its own with another member's root, that of a gateway.
    for (const [pair, as] of [
      [undefined, 'west'],
      [await certified(west, nodeOf('south')), 'west'],
      [await certified(west, nodeOf('south')), 'south'],
      [await certified(south, nodeOf('west')), 'west'],
      [own, 'south'],
      [own, 'nobody'],
      [await certified(west, `spiffe://west.${clusterSet}/gateway`), 'west'],
      [await certified(west, `spiffe://west.${clusterSet}.evil/node/test`), 'west'],
    ] as const)
      expect(await ask(pair, authority(web), as)).toMatch(/^refused/);
    expect(await ask(await certified(south, nodeOf('south')), authority(db), 'south')).toBe('200');
  });

  test('every caller × every limit of an export -> admitted by the gateway as the import would be', async () => {
    const { east, west, south, links } = await world();
    const limits = [undefined, [], ['west'], ['south'], ['west', 'south'], ['north'], ['east']];
    for (const [index, exportTo] of limits.entries())
      await exportService(east, { name: `s${index}`, ip: `243.9.1.${index + 1}`, port: 7000, endpoint: pod, exportTo });
    const callers = [west, south];
    const asked = async (caller: GatewayCluster, index: number) => {
      const pair = await certified(caller, nodeOf(caller.id));
      const to = { address: links.get(caller.id)!, port: gatewayPorts[0], sni: `${caller.id}.${clusterSet}` };
      return caller.inside.ask({ do: 'connect', ...to, ...pair, authority: `243.9.1.${index + 1}:7000` });
    };
    await until('the last one is served', async () => ((await asked(west, 0)) === '200' ? true : undefined));
    await until('the list is served', async () => ((await asked(south, 4)) === '200' ? true : undefined));
    for (const [index, exportTo] of limits.entries())
      for (const caller of callers) {
        const isAllowed = mayUse(exportTo, { exporter: 'east', reader: caller.id });
        expect([caller.id, exportTo, await asked(caller, index)]).toEqual([
          caller.id,
          exportTo,
          isAllowed ? '200' : '403',
        ]);
      }
  });

  test('the node’s Envoy says for each cluster whether a gateway of it answers -> yes, and within 3.5 s no longer after the gateway was killed', async () => {
    const { east, west } = await world();
    const health = (id: string) =>
      west.inside.ask({ do: 'get', to: `http://127.0.0.1:${healthPort}${healthPath(id)}` });
    expect(await health('east')).toBe('');
    expect(await health('north')).toMatch(/404/);
    for (const envoy of east.envoys) envoy.stop();
    const startMs = performance.now();
    await until('the answer is no', async () => (/503/.test(String(await health('east'))) ? true : undefined));
    expect(performance.now() - startMs).toBeLessThan(3500);
  });

  test('the proxy’s rules, one endpoint here and three behind a gateway -> shares of 1 to 3; no way to the gateway -> here alone, nothing fails', async () => {
    const { east, west, links } = await world();
    const gateways = [{ address: links.get('west')!, port: gatewayPorts[0] }];
    const reach = { network: 'network-of-east', gateways, trustRoots: await east.roots(), listenerPort: 15_101 };
    const rules = new ProxyRules(west.inside.name, { east: reach }, pod);
    rules.state.facts.upsertServiceImport(importOf(web));
    rules.state.facts.upsertEndpointSlice(sliceOf('west', 'IPv4', [{ addresses: [pod] }]));
    const remote = Array.from({ length: 3 }, () => remoteEndpoint('IPv4', { isUsable: true }));
    rules.state.facts.upsertEndpointSlice(sliceOf('east', 'FQDN', remote));
    rules.nearSide(undefined);
    rules.write();
    const count = async (times: number) => {
      const seen: Record<string, number> = {};
      for (let each = 0; each < times; each += 1) {
        const answer = await get(west, web);
        seen[answer] = (seen[answer] ?? 0) + 1;
      }
      return seen;
    };
    const shares = await count(400);
    expect(Object.keys(shares).sort()).toEqual(['web of east', 'web of west']);
    // Five standard deviations.
    expect(Math.abs(shares['web of east']! - 300)).toBeLessThan(44);
    rules.nearSide('none of its gateways answers');
    rules.change();
    expect(await count(50)).toEqual({ 'web of west': 50 });
  });

  test('a service has another address in the exporting cluster, where its own is another service’s -> asked by name; without a chain for it closed, never the other one', async () => {
    const { east, west, links } = await world();
    const other = { name: 'other', ip: '243.9.0.77', port: 8080, endpoint: '10.70.2.2' };
    await east.inside.ask({ do: 'serve', name: 'other of east', address: other.endpoint, port: other.port });
    await exportService(east, other);
    const here = { ...web, ip: other.ip };
    await answers(west, here, 'other of east');
    const gateways = [{ address: links.get('west')!, port: gatewayPorts[0] }];
    const reach = { network: 'network-of-east', gateways, trustRoots: await east.roots(), listenerPort: 15_101 };
    const rules = new ProxyRules(west.inside.name, { east: reach }, pod);
    const slice = sliceOf('east', 'FQDN', [remoteEndpoint('IPv4', { isUsable: true, isAskedByName: true })]);
    rules.state.facts.upsertServiceImport(importOf(here));
    rules.state.facts.upsertEndpointSlice(slice);
    rules.nearSide(undefined);
    rules.write();
    expect(await get(west, here)).toMatch(/^failed/);
    await addImport(west.client, { name: here.name, ips: [here.ip], port: here.port });
    await west.client.create(endpointSliceType, slice);
    await answers(west, here, 'web of east');
    await west.client.delete(endpointSliceType, { namespace: 'shop', name: slice.metadata.name });
    await until('its chain is gone', async () => (/^failed/.test(await get(west, here)) ? true : undefined));
  });

  test('an endpoint of a headless service, with a virtual address of IPv6 -> that endpoint of the other cluster answers, over IPv6', async () => {
    const { east, west, links } = await world();
    const [pods, node, vips] = [['fd00:70::5', 'fd00:70::6'], 'fd00:70::1', ['fd70:6f72:74f3::8', 'fd70:6f72:74f3::9']];
    for (const [cluster, address] of [...pods.map((each) => [east, each] as const), [west, node] as const])
      await inNamespace(cluster, ['ip', 'addr', 'add', `${address}/128`, 'dev', 'lo']);
    const ports = [{ name: 'sql', port: 5433, protocol: 'TCP' as const }];
    const placed = { name: 'db6', namespace: 'shop' };
    const imported = {
      ...{ apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceImport', metadata: placed },
      spec: { type: 'Headless', ports: [{ port: 5433, protocol: 'TCP' }] },
    } as ServiceImport;
    const slice = (labels: Record<string, string>, addresses: readonly string[]) => ({
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv6' as const, ports },
      metadata: { name: 'db6-1', namespace: 'shop', labels },
      endpoints: addresses.map((address, at) => ({ addresses: [address], hostname: `db-${at}` })),
    });
    for (const [at, address] of pods.entries())
      await east.inside.ask({ do: 'serve', name: `db-${at} of east`, address, port: 5433 });
    await exportService(east, { name: 'db6', ip: '243.9.0.99', port: 5433, endpoint: pod });
    const made = await east.client.get<ServiceImport>(serviceImportType, placed);
    await east.client.update<ServiceImport>(serviceImportType, { ...made, spec: imported.spec });
    await east.client.delete(endpointSliceType, { namespace: 'shop', name: 'db6-1' });
    await east.client.create(endpointSliceType, {
      ...slice({ 'kubernetes.io/service-name': 'db6' }, pods),
      ports: [{ ...ports[0]!, name: '' }],
    });
    const remote = slice(
      {
        'multicluster.kubernetes.io/service-name': 'db6',
        'multicluster.kubernetes.io/source-cluster': 'east',
        [virtualAddressesLabel]: 'true',
      },
      vips,
    );
    await west.client.create(serviceImportType, imported);
    await west.client.create(endpointSliceType, remote);
    const gateways = [{ address: links.get('west')!, port: gatewayPorts[0] }];
    const reach = { network: 'network-of-east', gateways, trustRoots: await east.roots(), listenerPort: 15_101 };
    const rules = new ProxyRules(west.inside.name, { east: reach }, pod, node);
    rules.state.facts.upsertServiceImport(imported);
    rules.state.facts.upsertEndpointSlice(remote);
    rules.nearSide(undefined);
    rules.write();
    for (const [at, vip] of vips.entries()) await answers(west, { ip: `[${vip}]`, port: 5433 }, `db-${at} of east`);
    expect(await get(west, { ip: `[${vips[0]!}]`, port: 5434 })).toMatch(/^failed/);
  });

  test('a gateway that presents another certificate than its own cluster would -> nothing is sent to it', async () => {
    const { east, west, south, links } = await world();
    const gateways = [{ address: links.get('west')!, port: gatewayPorts[0] }];
    const seen = (trustRoots: readonly string[]) =>
      west.networks({ east: { network: 'network-of-east', gateways, trustRoots, listenerPort: 15_101 } });
    // As if another member had published the address of this gateway as its own.
    await seen(await south.roots());
    west.envoys[0]!.stop();
    await pause(500);
    await startNode(west);
    await pause(2000);
    expect(await get(west, web)).toMatch(/^failed/);
    await seen(await east.roots());
    await answers(west, web, 'web of east');
  });

  test.each<[string, Target, (world: World) => Promise<unknown>]>([
    ['its cluster is left out of the export', log, ({ east }) => limitExport(east, 'log', ['south'])],
    [
      'the member is removed from the set',
      echo,
      async ({ east, south }) =>
        east.networks({ south: { network: 'network-of-south', gateways: [], trustRoots: await south.roots() } }),
    ],
  ])(
    '%s -> new streams refused within 1 s, open ones ended within 10 s; those of others go on',
    async (_how, to, revoke) => {
      const at = await world();
      const { west, south } = at;
      expect(await hold(west, 'taken', to)).toBe('open');
      expect(await hold(south, 'same service', to)).toBe('open');
      await revoke(at);
      await pause(1000);
      expect(await hold(west, 'again', to)).toBe('refused');
      expect(await closedWithinMs(west, 'taken')).toBeLessThan(streamsEndMs - 1000);
      expect(await goesOn(south, 'same service')).toBe(true);
      expect(await hold(west, 'once more', to)).toBe('refused');
      expect(await hold(south, 'another', to)).toBe('open');
    },
  );

  test('an export is withdrawn -> its streams end within 10 s, and those of other services on the same connection go on', async () => {
    const { east, west } = await world();
    expect(await hold(west, 'log', log)).toBe('open');
    expect(await hold(west, 'echo', echo)).toBe('open');
    await east.client.delete(serviceExportType, { namespace: 'shop', name: 'log' });
    expect(await closedWithinMs(west, 'log')).toBeLessThan(streamsEndMs);
    expect(await goesOn(west, 'echo')).toBe(true);
  });

  test('the root of each member is replaced, and leaves are renewed -> no request fails', async () => {
    const times = { roots: { lifeMs: 24_000, overlapMs: 4000, formerMs: 8000 }, leafLifeMs: 6000 };
    const { east, west, links } = await world({ times });
    const before = await signingOf(east);
    await west.inside.ask({ do: 'load', to: `http://${web.ip}:${web.port}/`, lanes: 2 });
    const gateways = [{ address: links.get('west')!, port: gatewayPorts[0] }];
    const most = new Set<number>();
    // As the agents do: what each publishes reaches the other.
    for (let look = 0; look < 120 && (await signingOf(east)).certificate === before.certificate; look += 1) {
      // A new handshake with what west signs now, before anybody has heard of another root of it.
      const pair = await certified(west, nodeOf('west'));
      const to = { address: links.get('west')!, port: gatewayPorts[0], sni: `west.${clusterSet}` };
      expect(await west.inside.ask({ do: 'connect', ...to, ...pair, authority: authority(web) })).toBe('200');
      const [ofEast, ofWest] = [await east.roots(), await west.roots()];
      most.add(ofEast.length);
      await east.networks({ west: { network: 'network-of-west', gateways: [], trustRoots: ofWest } });
      await west.networks({
        east: { network: 'network-of-east', gateways, trustRoots: ofEast, listenerPort: 15_101 },
      });
      await pause(250);
    }
    expect((await signingOf(east)).certificate).not.toBe(before.certificate);
    await pause(4000);
    const { count, failures } = (await west.inside.ask({ do: 'loaded' })) as { count: number; failures: object[] };
    expect(count).toBeGreaterThan(100);
    expect(failures).toEqual([]);
    expect([...most]).toContain(2);
    // A new connection is made with the new ones alone.
    west.envoys[0]!.stop();
    await pause(500);
    await startNode(west);
    await answers(west, web, 'web of east');
  });

  test('one of two gateways is killed -> failures in the first second alone; drained -> none', async () => {
    const { east, west } = await world({ gateways: 2 });
    const [first] = east.envoys;
    const load = () => west.inside.ask({ do: 'load', to: `http://${web.ip}:${web.port}/`, lanes: 8 });
    interface Loaded {
      readonly count: number;
      readonly failures: readonly { readonly atMs: number; readonly endMs: number; readonly error: string }[];
    }
    const loaded = async () => (await west.inside.ask({ do: 'loaded' })) as Loaded;
    await load();
    await pause(2000);
    const killedMs = Date.now();
    first!.stop();
    await pause(5000);
    const killed = await loaded();
    expect(killed.count).toBeGreaterThan(200);
    // Those that were under way fail with it, however long they were.
    const wrong = killed.failures.filter(({ atMs, endMs }) => endMs < killedMs || atMs > killedMs + 1000);
    expect(wrong).toEqual([]);
    // Another one in its place, and the one that is left is drained.
    await startGateway(east, 0);
    await pause(2500);
    await load();
    await pause(1000);
    expect(await drain(east, 1)).toMatch(/^drained: no connection is open|still open/);
    east.envoys[1]!.stop();
    await pause(2000);
    const drained = await loaded();
    expect(drained.count).toBeGreaterThan(200);
    expect(drained.failures).toEqual([]);
  });

  test('a gateway is published no longer, and still answers -> no new stream goes to it', async () => {
    const { east, west, links } = await world({ gateways: 2 });
    const trustRoots = await east.roots();
    const gateways = [{ address: links.get('west')!, port: gatewayPorts[1] }];
    await west.networks({ east: { network: 'network-of-east', gateways, trustRoots, listenerPort: 15_101 } });
    const used = async () => {
      const text = await inNamespace(west, ['curl', '-sf', 'http://127.0.0.1:19200/clusters']);
      return gatewayPorts.filter((port) => text.includes(`gateway/east::${links.get('west')}:${port}::`));
    };
    await until('one is left', async () => ((await used()).length === 1 ? true : undefined));
    expect(await used()).toEqual([gatewayPorts[1]]);
    east.envoys[0]!.stop();
    for (let each = 0; each < 20; each += 1) expect(await get(west, web)).toBe('web of east');
  });

  test('two gateways behind one address, replaced right after each other as Pods are -> no request fails, and the address is never left', async () => {
    const { east, west, links } = await world({ gateways: 2 });
    const shared = 15_440;
    const balance = (to: readonly number[]) => {
      const map = `numgen inc mod ${to.length} map { ${to.map((port, index) => `${index} : ${port}`).join(', ')} }`;
      const rules = `flush chain ip balancer pre; add rule ip balancer pre tcp dport ${shared} redirect to :${map}`;
      const chain = 'add chain ip balancer pre { type nat hook prerouting priority -100; }';
      return inNamespace(east, [pathOf('nft')!, `add table ip balancer; ${chain}; ${rules}`]);
    };
    await balance(gatewayPorts);
    const gateways = [{ address: links.get('west')!, port: shared }];
    const trustRoots = await east.roots();
    await west.networks({ east: { network: 'network-of-east', gateways, trustRoots, listenerPort: 15_101 } });
    await pause(2000);
    await answers(west, web, 'web of east');
    await west.inside.ask({ do: 'load', to: `http://${web.ip}:${web.port}/`, lanes: 8 });
    await pause(1000);
    const health = () => west.inside.ask({ do: 'get', to: `http://127.0.0.1:${healthPort}${healthPath('east')}` });
    const unreached: unknown[] = [];
    let isOver = false;
    const watching = (async () => {
      while (!isOver) {
        const answer = await health();
        if (answer !== '') unreached.push(answer);
        await pause(200);
      }
    })();
    for (const [index, other] of [
      [0, 1],
      [1, 0],
    ] as const) {
      // As the controllers do with a Pod that ends: no new connections, those that are there go on.
      await balance([gatewayPorts[other]]);
      await drain(east, index, '--shared-address');
      east.envoys[index]!.stop();
      await startGateway(east, index);
      await balance(gatewayPorts);
    }
    await pause(1000);
    isOver = true;
    await watching;
    const { count, failures } = (await west.inside.ask({ do: 'loaded' })) as { count: number; failures: object[] };
    expect(count).toBeGreaterThan(200);
    expect(failures).toEqual([]);
    expect(unreached).toEqual([]);
  });
});
