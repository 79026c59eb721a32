// A peer's shared service is used like a local one: two meshes as processes, the consumer's resolver as a third, and
// the views of people and programs on both sides.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askUdp } from '../src/dns/testing/edge/client.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { peerExportType } from '../src/peering/kinds/peer-export.ts';
import { type PeerService, peerServiceType } from '../src/peering/kinds/peer-service.ts';
import { pathOf } from './support/counterparts.ts';
import { type DnsProcess, startDnsProcess } from './support/dns-process.ts';
import { type Mesh, startMesh } from './support/peering-mesh.ts';
import { run, runPortolan } from './support/portolan.ts';

const folder = mkdtempSync(join(tmpdir(), 'peering-use-'));
const fqdn = 'checkout.default.east.example';
const alias = 'checkout.east.svc.peers.local';
let east: Mesh;
let west: Mesh;
let dns: DnsProcess;

beforeAll(async () => {
  [east, west] = await Promise.all([startMesh('east', join(folder, 'east')), startMesh('west', join(folder, 'west'))]);
  dns = await startDnsProcess(['--cluster-id', 'west', '--kubeconfig', west.api.kubeconfig, '--workers', '2']);
  await dns.whenReady();
  const token = (await east.peer('token', 'west')).out.trim();
  await west.peer('add', 'east', '--allow', 'east.example', '--token', token);
  await share(east, 'checkout');
});

afterAll(async () => {
  await dns?.stop();
  for (const mesh of [east, west]) await mesh?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const eventually = <T>(read: () => Promise<T> | T) => expect.poll(read, { timeout: 30_000, interval: 100 });
const ask = (question: string) => askUdp(dns.target, question);

async function share({ client }: Mesh, name: string): Promise<void> {
  const metadata = { name, namespace: 'default' };
  const ports = [{ name: 'http', port: 80, appProtocol: 'http' }];
  await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } });
  const spec = { services: [name], peers: ['west'], serviceAccount: name };
  await client.create(peerExportType, { apiVersion: 'portolan.dev/v1alpha1', kind: 'PeerExport', metadata, spec });
}

async function addressOf(name: string): Promise<string> {
  const { items } = await west.client.list<PeerService>(peerServiceType, { namespace: 'portolan-system' });
  return items.find(({ spec }) => spec.name === name)?.status?.ips?.[0] ?? 'none yet';
}

test('a service that east shares -> answers in west at its FQDN and its alias, with its own address and port [000-05]', async () => {
  await eventually(() => ask(`${fqdn} A`)).toMatch(/^241\./);
  const address = await addressOf('checkout');
  for (const name of [fqdn, alias]) {
    expect(await ask(`${name} A`)).toBe(address);
    expect(await ask(`${name} AAAA`)).toMatch(/^fd/);
    expect(await ask(`_http._tcp.${name} SRV`)).toBe(`15443 ${name}`);
  }
  expect(await ask(`${address.split('.').reverse().join('.')}.in-addr.arpa PTR`)).toBe(fqdn);
  expect(await ask('www.east.example A')).toBe('REFUSED');
});

test.skipIf(pathOf('dig') === undefined)('dig itself -> the same, with authority', async () => {
  const dig = async (...words: string[]) =>
    (await run('dig', ['@127.0.0.1', '-p', String(dns.port), '+noall', '+comments', '+answer', ...words])).out;
  const address = await addressOf('checkout');
  for (const name of [fqdn, alias]) {
    const out = await dig(name, 'A');
    expect(out).toMatch(/status: NOERROR/);
    expect(out).toMatch(/flags: qr aa/);
    expect(out).toMatch(new RegExp(`^${name}\\.\\s+5\\s+IN\\s+A\\s+${address}$`, 'm'));
  }
});

test('portolan dig -> the PeerService behind it, its peer and state', async () => {
  const why = await runPortolan(['dig', fqdn, '--admin', dns.admin]);
  expect(why.out).toContain('NOERROR by peers');
  expect(why.out).toMatch(/PeerService portolan-system\/east\.checkout\S+, peer east, Active, revision \d+, /);
});

test('peer services -> all that a proxy needs, for people and for programs [000-06]', async () => {
  const address = await addressOf('checkout');
  const san = 'spiffe://east.example/ns/default/sa/checkout';
  const { out } = await west.peer('services', 'east');
  // In step with its owner, and nothing here carries connections to it.
  await eventually(async () => (await west.peer('services', 'east')).out).toContain('NotProgrammed');
  for (const text of [`${fqdn},${alias}`, address, '192.0.2.1:15443', san]) expect(out).toContain(text);
  expect((await west.peer('services')).out).toMatch(/^PEER +ID/);
  expect(JSON.parse((await west.peer('services', '-o', 'json')).out)).toEqual([
    {
      peer: 'east',
      id: fqdn,
      hostnames: [fqdn, alias],
      ips: [address, expect.stringMatching(/^fd/)],
      protocols: ['http'],
      ingress: [{ address: '192.0.2.1', port: 15443 }],
      sni: fqdn,
      sans: [san],
      state: 'Active',
      notCarried: { reason: 'NotProgrammed', message: expect.stringContaining('no portolan xds runs here') },
    },
  ]);
  expect((await west.peer('services', '-o', 'xml')).errors).toContain('write text, wide, json');
});

test("peer routes -> all that the owner's ingress needs, for people and for programs [000-06]", async () => {
  await runPortolan([
    'register',
    'default/checkout',
    '--address',
    '127.0.0.9',
    '--port',
    '8080',
    '--kubeconfig',
    east.api.kubeconfig,
  ]);
  await eventually(async () => (await east.peer('routes')).out).toContain('127.0.0.9:8080');
  const { out } = await east.peer('routes', 'west');
  expect(out).toMatch(/^SNI +SERVICE +PORT +BACKENDS +SAN +CLIENTS/);
  expect(out).toMatch(/checkout\.default\.east\.example +default\/checkout +80 .*west\(west\.example\)/);
  expect(JSON.parse((await east.peer('routes', '-o', 'json')).out)).toMatchObject({
    routes: [
      {
        sni: fqdn,
        backends: [{ address: '127.0.0.9', port: 8080 }],
        clients: [{ peer: 'west', trustDomain: 'west.example', roots: expect.stringContaining('BEGIN CERTIFICATE') }],
      },
    ],
    leftOut: [],
  });
  expect((await east.peer('routes', 'nobody')).errors).toContain('no such Peer');
});

test('withdrawn at the owner -> gone from DNS in the consumer, within moments [000-05]', async () => {
  await share(east, 'billing');
  await eventually(() => ask('billing.east.svc.peers.local A')).toMatch(/^241\./);
  await east.client.delete(peerExportType, { namespace: 'default', name: 'billing' });
  await eventually(() => ask('billing.east.svc.peers.local A')).toBe('NXDOMAIN');
  expect(await ask('billing.default.east.example A')).toBe('REFUSED');
  expect(await ask(`${fqdn} A`)).toMatch(/^241\./);
});

test('the owner goes away -> its names go on; the resolver starts anew meanwhile -> it knows them [000-01]', async () => {
  await east.peering.stop('SIGKILL');
  const address = await addressOf('checkout');
  expect(await ask(`${fqdn} A`)).toBe(address);
  await dns.stop();
  dns = await startDnsProcess(['--cluster-id', 'west', '--kubeconfig', west.api.kubeconfig]);
  const seen = new Set<string>();
  await eventually(async () => {
    const answer = await ask(`${fqdn} A`);
    seen.add(answer);
    return answer;
  }).toBe(address);
  // Never a "no" on the way, which a resolver would cache.
  expect([...seen].filter((answer) => answer !== 'SERVFAIL' && answer !== address)).toEqual([]);
});
