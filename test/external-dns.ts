// `npm run check:external-dns`: public names of a Federation by a real external-dns, both ways, with BIND as the server. First
// external-dns is a webhook provider that the authority calls, then it reads the DNSEndpoints that the authority writes.
// Not among the tests, because building external-dns takes minutes and needs Go. Prints a line for each thing it has seen;
// ends with 1 at the first that is not so.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findExternalDns } from '../scripts/external-dns.mjs';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { clusterType } from '../src/clusterset/kinds/cluster.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { type ServiceShard, serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { memberLeaseName } from '../src/clusterset/rules/broker-layout.ts';
import { type Federation, type FederationPublicDns, federationType } from '../src/federation/kinds/federation.ts';
import { dnsEndpointType } from '../src/federation/public/dns-endpoint.ts';
import { dnsEndpointDefinition } from '../src/federation/public/testing/dns-endpoint-definition.ts';
import { createClient } from '../src/kube/client/client.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import type { AnyObject, ResourceType } from '../src/kube/objects/object.ts';
import { startAuthority } from '../src/main/authority/part.ts';
import { startHome } from '../src/main/home/part.ts';
import { pathOf } from './support/counterparts.ts';
import { freePort } from './support/free-port.ts';

const zone = 'example.org';
const name = `checkout.shop.world.svc.federation.${zone}`;
const world = createRealWorld();
const found = findExternalDns();
if (found.path === undefined || pathOf('named') === undefined || pathOf('dig') === undefined) {
  console.log(`external-dns is not checked: ${'why' in found ? found.why : 'named and dig are not installed'}`);
  process.exit(1);
}
const directory = mkdtempSync(join(tmpdir(), 'portolan-external-dns-'));
const secret = randomBytes(32).toString('base64');
const running: ChildProcess[] = [];
const dnsPort = await freePort();
/** external-dns has it built in. */
const webhookPort = 8888;

startBind();
await until('BIND answers', () => dig(`www.${zone}`).length === 1);
const home = await startHome({
  ...{ world, log: silentLog, directory: join(directory, 'broker'), listen: { host: '127.0.0.1', port: 0 } },
});
const client = createClient(home.transport, { world, userAgent: 'check' });
const { kubeconfig } = home;
await layOut();
// A cluster that falls silent is taken out of the public zone.
const beating = setInterval(() => beat().catch(console.error), 5000);
const authority = await startAuthority({
  ...{ world, log: silentLog, federation: 'world', broker: { client, clusterset: 'prod' } },
  listen: { hosts: ['127.0.0.1'], port: 0 },
  trust: { trusted: { ranges: [], identities: [] }, keys: [] },
});

try {
  await authority.whenSynced();
  await byWebhook();
  await byDnsEndpoints();
  console.log('external-dns: all as wanted');
} catch (error) {
  console.error(error);
  for (const log of ['webhook.log', 'crd.log', 'bind.log']) {
    try {
      console.error(`${log}: ${readFileSync(join(directory, log), 'utf8').split('\n').slice(-15).join('\n')}`);
    } catch {
      // It was not started yet.
    }
  }
  process.exitCode = 1;
} finally {
  clearInterval(beating);
  await authority.stop();
  await home.stop();
  for (const child of running) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}

async function byWebhook(): Promise<void> {
  const url = `http://127.0.0.1:${webhookPort}`;
  await publish({ domain: zone, provider: { type: 'Webhook', webhook: { url } } });
  await until('a provider that is not there is said: webhook', async () => (await reason()) === 'PublicZoneFailed');
  const provider = startExternalDns('webhook', ['--webhook-server', '--source=fake', '--log-level=debug']);
  await until('webhook: the record is there', () => dig(name).join() === '192.0.2.1');
  await until('webhook: all well is said', async () => (await reason()) !== 'PublicZoneFailed');
  see('webhook: the mark is beside it', dig(`_portolan-${name}`, 'TXT').join().includes('owner=prod/world'));
  await setAddress({ hostname: 'lb.example.net' });
  await until(
    'webhook: an alias takes the place of the address',
    () => dig(name, 'CNAME').join() === 'lb.example.net.',
  );
  provider.kill('SIGSTOP');
  await setAddress({ ip: '192.0.2.3' });
  await until('webhook: one that hangs is said', async () => (await reason()) === 'PublicZoneFailed', 60);
  provider.kill('SIGCONT');
  await until('webhook: one that goes on is used again', () => dig(name).join() === '192.0.2.3', 90);
  await publish(undefined);
  await until(
    'webhook: nothing of ours is left',
    () => dig(name).length === 0 && dig(`_portolan-${name}`, 'TXT').length === 0,
  );
  see("webhook: others' records are as they were", dig(`www.${zone}`).join() === '192.0.2.80');
  provider.kill('SIGKILL');
}

async function byDnsEndpoints(): Promise<void> {
  await publish({ domain: zone, provider: { type: 'DNSEndpoint' } });
  await until('a broker without the kind is said: DNSEndpoint', async () => (await reason()) === 'PublicZoneFailed');
  const definitions = { group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions' };
  await client.create(
    { ...definitions, kind: 'CustomResourceDefinition', isNamespaced: false },
    dnsEndpointDefinition as unknown as AnyObject,
  );
  startExternalDns('crd', [
    ...['--source=crd', '--crd-source-apiversion=externaldns.k8s.io/v1alpha1', '--crd-source-kind=DNSEndpoint'],
    ...['--namespace=prod', `--kubeconfig=${kubeconfig}`, '--interval=3s', '--registry=txt', '--txt-owner-id=site'],
    ...['--policy=sync', '--managed-record-types=A', '--managed-record-types=AAAA', '--managed-record-types=CNAME'],
  ]);
  await until('DNSEndpoint: the record is there', () => dig(name).join() === '192.0.2.3', 60);
  await until('DNSEndpoint: external-dns has observed it', async () => {
    const [object] = (await client.list(dnsEndpointType, { namespace: 'prod' })).items;
    const status = (object as { status?: { observedGeneration?: number } } | undefined)?.status;
    return status?.observedGeneration === object?.metadata.generation;
  });
  await setAddress({ hostname: 'lb.example.net' });
  await until('DNSEndpoint: an alias takes the place of the address', () => dig(name, 'CNAME').length === 1, 60);
  await setAddress({ ip: '192.0.2.4' });
  await until('DNSEndpoint: and back', () => dig(name).join() === '192.0.2.4', 60);
  await client.delete(federationType, { namespace: 'prod', name: 'world' });
  await until('DNSEndpoint: the Federation is deleted, the record goes', () => dig(name).length === 0, 60);
  see("DNSEndpoint: others' records are as they were", dig(`www.${zone}`).join() === '192.0.2.80');
}

function startBind(): void {
  writeFileSync(
    join(directory, 'zone'),
    `$TTL 300
@ IN SOA ns.${zone}. hostmaster.${zone}. 1 7200 1800 86400 60
@ IN NS ns.${zone}.
ns IN A 127.0.0.1
www IN A 192.0.2.80
`,
  );
  writeFileSync(
    join(directory, 'named.conf'),
    `options { directory "${directory}"; listen-on port ${dnsPort} { 127.0.0.1; }; listen-on-v6 { none; };
 pid-file "${directory}/named.pid"; session-keyfile "${directory}/session.key"; recursion no; dnssec-validation no; };
controls { };
key "site-key" { algorithm hmac-sha256; secret "${secret}"; };
zone "${zone}" { type master; file "zone"; allow-update { key "site-key"; }; allow-transfer { key "site-key"; }; };
`,
  );
  start('bind', pathOf('named')!, ['-g', '-c', join(directory, 'named.conf')]);
}

function startExternalDns(log: string, args: readonly string[]): ChildProcess {
  return start(log, found.path!, [
    ...args,
    ...['--provider=rfc2136', '--rfc2136-host=127.0.0.1', `--rfc2136-port=${dnsPort}`, `--rfc2136-zone=${zone}`],
    ...['--rfc2136-tsig-keyname=site-key', `--rfc2136-tsig-secret=${secret}`],
    ...['--rfc2136-tsig-secret-alg=hmac-sha256', '--rfc2136-tsig-axfr', `--domain-filter=${zone}`],
    ...['--rfc2136-min-ttl=10s', '--metrics-address=127.0.0.1:0'],
  ]);
}

function start(log: string, program: string, args: readonly string[]): ChildProcess {
  const output = openSync(join(directory, `${log}.log`), 'a');
  const child = spawn(program, args, { stdio: ['ignore', output, output] });
  running.push(child);
  return child;
}

async function layOut(): Promise<void> {
  const make = (type: ResourceType, namespace: string | undefined, named: string, rest: object = {}) =>
    client.create(type, {
      apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
      kind: type.kind,
      metadata: { name: named, ...(namespace ? { namespace } : {}) },
      ...rest,
    } as AnyObject);
  await make(namespaceType, undefined, 'prod');
  await make(federationType, 'prod', 'world', { spec: {} });
  await make(namespaceType, undefined, 'prod-m-east');
  await make(clusterType, 'prod', 'east', { spec: { namespace: 'prod-m-east' } });
  await make(heartbeatType, 'prod-m-east', memberLeaseName, { spec: {} });
  const spec = { type: 'ClusterSetIP', exportedAt: '2026-01-01T00:00:00Z', readyEndpoints: 1 };
  const loadBalancer = [{ ip: '192.0.2.1' }];
  await make(serviceShardType, 'prod-m-east', 'checkout.shop', {
    spec: { ...spec, clusterIPs: ['10.0.3.64'], loadBalancer },
  });
}

async function beat(): Promise<void> {
  const ref = { namespace: 'prod-m-east', name: memberLeaseName };
  const body = { spec: { renewTime: new Date().toISOString() } };
  await client.patch(heartbeatType, ref, { kind: 'merge', body });
}

async function publish(wanted: FederationPublicDns | undefined): Promise<void> {
  const body = { spec: { public: wanted ?? null } };
  await client.patch<Federation>(federationType, { namespace: 'prod', name: 'world' }, { kind: 'merge', body });
}

async function setAddress(address: { readonly ip: string } | { readonly hostname: string }): Promise<void> {
  const body = { spec: { loadBalancer: [address] } };
  const ref = { namespace: 'prod-m-east', name: 'checkout.shop' };
  await client.patch<ServiceShard>(serviceShardType, ref, { kind: 'merge', body });
}

async function reason(): Promise<string | undefined> {
  const federation = await client.get<Federation>(federationType, { namespace: 'prod', name: 'world' });
  return federation.status?.conditions?.[0]?.reason;
}

function dig(asked: string, type = 'A'): string[] {
  try {
    const args = ['@127.0.0.1', '-p', String(dnsPort), '+short', '+tries=1', '+time=2', asked, type];
    const output = execFileSync(pathOf('dig')!, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return output.split('\n').filter((line) => line !== '' && !line.startsWith(';'));
  } catch {
    return [];
  }
}

async function until(what: string, condition: () => Promise<boolean> | boolean, seconds = 45): Promise<void> {
  for (let i = 0; i < seconds * 5; i++) {
    if (await condition()) return console.log(`seen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`after ${seconds} s still not: ${what}`);
}

function see(what: string, isSo: boolean): void {
  if (!isSo) throw new Error(`not so: ${what}`);
  console.log(`seen: ${what}`);
}
