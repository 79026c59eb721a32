// Typical work with a clusterset, its names and its peers, step by step, on homes of either kind. The steps follow
// each other; every part runs with the account that `portolan install` made for it.

import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { askUdp } from '../../src/dns/testing/edge/client.ts';
import { peeringNamespace } from '../../src/kube/objects/ours.ts';
import { hasControllerManager } from './api-server.ts';
import type { FlowHome } from './homes.ts';
import type { RunningPart, RunningParts } from './parts.ts';

export interface FlowWorld {
  readonly broker: FlowHome;
  readonly east: FlowHome;
  readonly west: FlowHome;
  readonly parts: RunningParts;
  /** Members that some tests add. */
  readonly more: FlowHome[];
}

export const checkout = 'checkout.shop.svc.clusterset.local';

const meshOf = ({ name }: FlowHome) =>
  ['enabled=true', `trustDomain=${name}.example`, 'advertise=127.0.0.1:8008'].map((one) => `--set peering.${one}`);

/** All parts that need no more than a home. On a home that runs no Pods, their accounts and rights alone. */
export async function installFlow({ east, west }: FlowWorld): Promise<void> {
  for (const home of [east, west]) {
    const kind = home.kind === 'real' ? '' : ' --rights-only';
    const on = [
      ...['xds.enabled', 'authority.enabled', 'ingress.enabled', 'envoy.enabled', 'dashboard.enabled'],
      'agent.writeServices',
    ];
    const set = [
      'dns.stubAdvertise=127.0.0.1',
      'authority.federation=world',
      'dashboard.host=portolan.example',
      ...on.map((path) => `${path}=true`),
    ].map((one) => `--set ${one}`);
    const line = `install ${[...set, ...meshOf(home)].join(' ')}${kind}`;
    expect(await home.type(line)).toContain('created ServiceAccount portolan-system/portolan-dns');
    expect(await home.type(line)).toMatch(/^installed; /m);
  }
}

/** A broker, two members, their agents. */
export async function joinFlow({ broker, east, west, parts }: FlowWorld): Promise<RunningPart[]> {
  await broker.type(
    'broker init --clusterset prod --clusterset-range 127.77.0.0/16 --lease-renew 1 --lease-duration 4',
  );
  const agents: RunningPart[] = [];
  for (const [index, home] of [east, west].entries()) {
    const token = await broker.type(`broker token ${home.name} --clusterset prod`);
    await home.type(`join ${token.trim().split(/\s+/).at(-1)} --pod-cidr 10.${index + 1}.0.0/16`);
    agents.push(parts.start(home, 'agent', ['agent']));
  }
  await until('both members are alive', async () => (await broker.type('status -o json')).includes('"east"'));
  return agents;
}

/** A Service with one ready Pod, whose slice the home's own controller writes. */
export function addService(home: FlowHome, name: string, ip: string, namespace = 'shop'): void {
  const metadata = { name, namespace };
  const labels = { app: name };
  home.apply(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    // A Pod whose node is not there gets no endpoint.
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'one' } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, labels },
      spec: { nodeName: 'one', terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: 'none' }] },
    },
  );
  const status = {
    phase: 'Running',
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  home.kubectl(['patch', 'pod', name, '-n', namespace, '--subresource=status', '-p', JSON.stringify({ status })]);
  if (home.kind === 'real' && !hasControllerManager) home.apply(sliceOf(name, namespace, ip));
}

function sliceOf(name: string, namespace: string, ip: string): object {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, namespace, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: [ip], conditions: { ready: true } }],
  };
}

/** Exported in east, imported in west with east's endpoint; both export; east takes it back. */
export async function exportFlow({ broker, east, west }: FlowWorld): Promise<void> {
  addService(east, 'checkout', '10.1.0.7');
  west.kubectl('create namespace shop');
  await east.type('export shop/checkout --wait --timeout 150');
  await until('west imports it', () => endpointsIn(west) === '10.1.0.7');
  addService(west, 'checkout', '10.2.0.7');
  await west.type('export shop/checkout --wait --timeout 150');
  await until('east imports both', () => endpointsIn(east) === '10.1.0.7,10.2.0.7');
  expect(broker.kubectl('get serviceshards -A -o name').split('\n')).toHaveLength(2);
  await east.type('unexport shop/checkout');
  await until('only that of west is left', () => endpointsIn(east) === '10.2.0.7');
  await east.type('export shop/checkout --wait --timeout 150');
  await until('and it comes back', () => endpointsIn(west) === '10.1.0.7,10.2.0.7');
}

/** A member's writes at the broker are bounded: an export beyond the bound says so, and leaves no record. */
export async function quotaFlow({ broker, east }: FlowWorld): Promise<void> {
  const quota = 'resourcequota portolan-member -n prod-m-east';
  const shards = 'count/serviceshards.portolan.dev';
  const { hard } = JSON.parse(broker.kubectl(`get ${quota} -o json`)).spec;
  expect(Object.keys(hard)).toEqual(expect.arrayContaining([shards, 'portolan.dev/bytes']));
  const limit = (count: string) =>
    broker.kubectl([
      ...['patch', 'resourcequota', 'portolan-member', '-n', 'prod-m-east', '--type=merge'],
      ...['-p', JSON.stringify({ spec: { hard: { [shards]: count } } })],
    ]);
  limit('1');
  const enforced = () => JSON.parse(broker.kubectl(`get ${quota} -o json`)).status?.hard?.[shards] === '1';
  await until('the limit is in force', enforced);
  addService(east, 'surplus', '10.1.0.11');
  await east.type('export shop/surplus');
  const said = () => east.kubectl('get serviceexport surplus -n shop -o json');
  await until('the export says so', () => said().includes('QuotaExceeded'));
  expect(broker.kubectl('get serviceshards -n prod-m-east -o name')).not.toContain('surplus');
  limit(hard[shards]);
  await east.type('unexport shop/surplus');
}

/** Addresses behind the import of checkout, in order. */
function endpointsIn(home: FlowHome): string {
  const out = home.kubectl([
    ...['get', 'endpointslices', '-n', 'shop', '-l', 'multicluster.kubernetes.io/service-name=checkout'],
    ...['-o', 'jsonpath={range .items[*]}{.endpoints[*].addresses[0]} {end}'],
  ]);
  return out.split(/\s+/).filter(Boolean).sort().join();
}

async function startResolver({ parts }: FlowWorld, home: FlowHome, ...args: string[]): Promise<RunningPart> {
  const words = ['--listen', '127.0.0.1:0', '--stub-listen', '127.0.0.1:0', '--stub-shared'];
  const dns = parts.start(home, 'dns', ['dns', ...words, ...args]);
  await until('the resolver is ready', () => /^ready$/m.test(dns.log()));
  return dns;
}

function ask(dns: RunningPart, question: string): Promise<string> {
  const [host = '', port = ''] = dns.said('listening').split(':');
  return askUdp({ host, port: Number(port) }, question);
}

/** The name of an import, in both clusters. */
export async function dnsFlow(world: FlowWorld): Promise<Map<string, RunningPart>> {
  const resolvers = new Map<string, RunningPart>();
  for (const home of [world.east, world.west]) {
    const dns = await startResolver(world, home);
    resolvers.set(home.name, dns);
    const ip = home.kubectl('get serviceimport checkout -n shop -o jsonpath={.spec.ips[0]}');
    expect(ip).toMatch(/^127\.77\./);
    await until(`${home.name} answers`, async () => (await ask(dns, `${checkout} A`)) === ip);
    expect(await ask(dns, `no.shop.svc.clusterset.local A`)).toBe('NXDOMAIN');
    expect(await ask(dns, 'checkout.shop.svc.cluster.local A')).toMatch(/^10\./);
  }
  return resolvers;
}

export function startPeering({ parts }: FlowWorld, home: FlowHome, ...args: string[]): RunningPart {
  const words = ['--trust-domain', `${home.name}.example`, '--listen', '127.0.0.1:0', '--ingress', '192.0.2.1:15443'];
  return parts.start(home, 'peering', ['peering', '--secrets-namespace', peeringNamespace, ...words, ...args]);
}

/** east shares billing with west by peering, withdraws it, and the peer is removed. */
export async function peeringFlow(world: FlowWorld, resolver: RunningPart): Promise<void> {
  const { east, west } = world;
  for (const home of [east, west]) {
    const peering = startPeering(world, home, '--replicated');
    await until(`peering of ${home.name} is ready`, () => peering.said('ready') !== '');
  }
  const token = (await east.type('peer token west --allow west.example')).trim();
  await west.type(`peer add east --allow east.example --token ${token}`);
  addService(east, 'billing', '10.1.0.8');
  await east.type('peer export shop/billing --to west');
  const alias = 'billing.east.svc.peers.local A';
  await until('west answers its name', async () => /^241\./.test(await ask(resolver, alias)));
  expect(await west.type('peer services east')).toContain('billing.shop.east.example');
  east.kubectl('delete peerexports --all -n shop');
  await until('west has forgotten it', async () => (await ask(resolver, alias)) === 'NXDOMAIN');
}

/** The exporting namespace is deleted; then the members leave, and nothing of them stays at the broker. */
export async function leaveFlow({ broker, east, west }: FlowWorld): Promise<void> {
  const isCleaned = ({ kind }: FlowHome) => kind === 'embedded' || hasControllerManager;
  if (isCleaned(east)) {
    east.kubectl('delete namespace shop --timeout=60s');
    await until('only the endpoints of west are left', () => endpointsIn(west) === '10.2.0.7');
  }
  for (const home of [east, west]) await home.type('leave');
  if (!isCleaned(broker)) return;
  const left = () => broker.kubectl('get clusters.portolan.dev,serviceshards,serviceimports,leases -A -o name');
  await until('the broker holds nothing of the members', () => !/cluster\.|shard|import|member/.test(left()));
  expect(west.kubectl('get serviceimports -A -o name')).toBe('');
}

/** The agent looks for released addresses once a minute. */
const patienceMs = 90_000;

export async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`after ${patienceMs / 1000} s still not: ${what}`);
    await pause(200);
  }
}
