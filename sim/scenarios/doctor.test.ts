// Each code of doctor appears when its fault is made on purpose in a simulated clusterset, and goes when that is mended.

import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { addressClaimType } from '../../src/addresses/address-claim.ts';
import { version } from '../../src/base/version.ts';
import { issueCertificate } from '../../src/base/x509/certificates.ts';
import { membershipRef } from '../../src/clusterset/explain/consult.ts';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceExportPolicyType } from '../../src/clusterset/kinds/service-export-policy.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import type { Diagnosis } from '../../src/doctor/diagnosis.ts';
import { federationType } from '../../src/federation/kinds/federation.ts';
import { type Lease, leaseType } from '../../src/kube/objects/lease.ts';
import type { AnyObject, ResourceType } from '../../src/kube/objects/object.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { secretType } from '../../src/kube/objects/secret.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { peerType } from '../../src/peering/kinds/peer.ts';
import { peerExportType } from '../../src/peering/kinds/peer-export.ts';
import { endingAnnotation, formatEnding } from '../../src/xds/identity/ending-certificates.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { type CommandDesk, openDesk, typeAt } from '../command.ts';
import { type Fault, withFaults } from '../faults.ts';
import { exportService, service, serviceExport } from '../manifests.ts';
import type { HttpHandler } from '../virtual-network.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };
const forever = Number.POSITIVE_INFINITY;

interface Scene {
  readonly set: SimClusterSet;
  readonly desk: CommandDesk;
  readonly faults: Fault[];
  /** The answer of every home to /readyz, and the error of its clock. */
  readonly homes: { readyz?: string; clockOffMs: number };
}

async function open(): Promise<Scene> {
  const faults: Fault[] = [];
  const homes: Scene['homes'] = { clockOffMs: 0 };
  let wallMs = () => 0;
  const wrap = (name: string, handler: HttpHandler): HttpHandler => {
    const faulty = withFaults(faults)(name, handler);
    return async (request) => {
      const date = new Date(wallMs() + homes.clockOffMs).toUTCString();
      if (request.path.startsWith('/readyz') && homes.readyz !== undefined)
        return { status: 503, headers: { date }, body: Buffer.from(homes.readyz) };
      const response = await faulty(request);
      return { ...response, headers: { ...response.headers, date } };
    };
  };
  const set = await new SimClusterSet({ clusters: ['east', 'west'], wrap }).start({ namespaces: ['shop'] });
  await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
  await exportService(set.home('west').admin, key, { endpoints: ['10.2.0.1'] });
  await set.time.advance(20_000);
  const desk = await openDesk(set, 'west');
  wallMs = () => desk.deps.world.clock.wallMs();
  return { set, desk, faults, homes };
}

async function doctor({ set, desk }: Scene, more = ''): Promise<Diagnosis & { exitCode: number }> {
  const lines = await set.time.settle(typeAt(desk, `doctor -o json${more}`));
  return { ...(JSON.parse(lines.join('\n')) as Diagnosis), exitCode: desk.exitCode };
}

function partLease(scene: Scene, part: string, { ageMs = 120_000, theirs = version } = {}): AnyObject {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: `portolan-${part}-n1`,
      namespace: systemNamespace,
      labels: { 'portolan.dev/part': part },
      annotations: { 'portolan.dev/node': 'n1', 'portolan.dev/version': theirs },
    },
    spec: {
      leaseDurationSeconds: 30,
      renewTime: new Date(scene.desk.deps.world.clock.wallMs() - ageMs).toISOString(),
    },
  } as AnyObject;
}

const silentPart = (part: string): Pick<Case, 'make' | 'mend'> => ({
  make: async (scene) => void (await scene.desk.home.create(leaseType, partLease(scene, part))),
  mend: async ({ desk }) =>
    void (await desk.home.delete(leaseType, { namespace: systemNamespace, name: `portolan-${part}-n1` })),
});

const adminUrl = 'http://127.0.0.1:9001';

/** A part whose admin endpoint answers through its home. The fault is one answer, mended is another. */
function answeringPart(
  part: string,
  faulty: object,
  fine: object | ((scene: Scene) => Promise<object>),
): Pick<Case, 'make' | 'mend'> {
  const serve = ({ set }: Scene, answer: object) =>
    set.simulation.network.listen(adminUrl, async () => ({
      status: 200,
      headers: { 'content-type': 'application/json', 'portolan-part': 'n1_a' },
      body: Buffer.from(JSON.stringify(answer)),
    }));
  return {
    make: async (scene) => {
      serve(scene, faulty);
      const lease = partLease(scene, part, { ageMs: 0 }) as Lease;
      lease.metadata.annotations!['portolan.dev/admin'] = adminUrl;
      lease.spec!.holderIdentity = 'n1_a';
      lease.spec!.leaseDurationSeconds = 3600;
      await scene.desk.home.create(leaseType, lease);
    },
    mend: async (scene) => serve(scene, typeof fine === 'function' ? await fine(scene) : fine),
  };
}

const explained = (address: string) => ({ rcode: 'NOERROR', records: [{ text: `A ${address}` }] });

/** An object that exists while the fault does; `status` is written after it. */
function object(
  at: 'home' | 'broker',
  type: ResourceType,
  manifest: { metadata: { name: string; namespace?: string }; spec?: object; data?: object },
  status?: object,
): Pick<Case, 'make' | 'mend'> {
  const clientOf = ({ desk, set }: Scene) => (at === 'home' ? desk.home : set.broker.admin);
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  return {
    make: async (scene) => {
      const client = clientOf(scene);
      await client.create(type, { apiVersion, kind: type.kind, ...manifest } as unknown as AnyObject);
      const patch = { kind: 'merge', body: { status } } as const;
      if (status !== undefined) await client.patch(type, manifest.metadata, patch, { subresource: 'status' });
    },
    mend: async (scene) => void (await clientOf(scene).delete(type, manifest.metadata)),
  };
}

function certificate(fromMs: number, toMs: number): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return issueCertificate({
    subject: { commonName: 'test' },
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    use: { kind: 'client' },
    serial: new Uint8Array(16).fill(7),
    notBeforeMs: fromMs,
    notAfterMs: toMs,
  });
}

const peer = (name: string) => ({
  metadata: { name, namespace: systemNamespace },
  spec: { address: 'peer.example:8008', trust: { domain: 'peer.example', bundle: 'PEM' } },
});

interface Case {
  readonly code: string;
  readonly says: RegExp;
  readonly exitCode: number;
  readonly make: (scene: Scene) => Promise<void>;
  readonly mend: (scene: Scene) => Promise<void>;
}

const dayMs = 86_400_000;
const tls = (name: string, fromMs: number, toMs: number): Pick<Case, 'make' | 'mend'> => ({
  make: async ({ desk }) => {
    const nowMs = desk.deps.world.clock.wallMs();
    const pem = certificate(nowMs + fromMs, nowMs + toMs);
    const data = { 'tls.crt': Buffer.from(pem).toString('base64') };
    const metadata = { name, namespace: systemNamespace };
    await desk.home.create(secretType, { apiVersion: 'v1', kind: 'Secret', metadata, data } as AnyObject);
  },
  mend: async ({ desk }) => void (await desk.home.delete(secretType, { namespace: systemNamespace, name })),
});

const cases: readonly Case[] = [
  {
    code: 'PTL0101',
    says: /https:\/\/west: /,
    exitCode: 6,
    make: async ({ set }) => set.home('west').kill(),
    mend: async ({ set }) => set.home('west').start(),
  },
  {
    code: 'PTL0102',
    says: /the disk is full/,
    exitCode: 7,
    make: async ({ homes }) => {
      homes.readyz = '[+]ping ok\n[-]store failed: the store takes no writes: the disk is full\nreadyz check failed\n';
    },
    mend: async ({ homes }) => {
      delete homes.readyz;
    },
  },
  {
    code: 'PTL0103',
    says: /you may not read leases in portolan-system/,
    exitCode: 8,
    make: async ({ faults }) =>
      void faults.push({
        home: 'west',
        method: 'GET',
        path: `${systemNamespace}/leases`,
        from: 'admin',
        code: 403,
        times: forever,
      }),
    mend: async ({ faults }) => void faults.splice(0),
  },
  {
    code: 'PTL0201',
    says: /it does not answer/,
    exitCode: 7,
    make: async ({ set }) => set.broker.kill(),
    mend: async ({ set }) => {
      await set.broker.start();
      await set.time.advance(60_000);
    },
  },
  {
    code: 'PTL0202',
    says: /it has not renewed its lease for \d+s|its lease has run out/,
    exitCode: 7,
    make: async ({ set }) => {
      set.killAgent('east');
      await set.time.advance(60_000);
    },
    mend: async ({ set }) => {
      set.startAgent('east');
      await set.time.advance(120_000);
    },
  },
  {
    code: 'PTL0203',
    says: /it has come back 2 times lately and is held down until /,
    exitCode: 0,
    make: async ({ set }) => {
      for (let round = 0; round < 2; round += 1) {
        set.killAgent('east');
        await set.time.advance(60_000);
        set.startAgent('east');
        await set.time.advance(12_000);
      }
    },
    mend: async ({ set }) => set.time.advance(300_000),
  },
  {
    code: 'PTL0204',
    says: /the broker .* refuses them/,
    exitCode: 7,
    make: async ({ faults }) =>
      void faults.push({ home: 'broker', method: 'GET', path: '/', code: 401, from: 'agent-west', times: forever }),
    mend: async ({ faults, set }) => {
      faults.splice(0);
      await set.time.advance(60_000);
    },
  },
  { code: 'PTL0301', says: /there is no Service of that name/, exitCode: 7, ...exportWithoutService() },
  {
    code: 'PTL0302',
    says: /PortConflict/,
    exitCode: 0,
    make: ({ set, desk }) => changePort(set, desk, 8080),
    mend: ({ set, desk }) => changePort(set, desk, 80),
  },
  {
    code: 'PTL0303',
    says: /it is limited to north, which the clusterset does not have/,
    exitCode: 0,
    make: ({ set, desk }) => limit(set, desk, 'north'),
    mend: ({ set, desk }) => limit(set, desk, null),
  },
  {
    code: 'PTL0303',
    says: /it selects no Service/,
    exitCode: 0,
    ...withTime(
      object('home', serviceExportPolicyType, {
        metadata: { name: 'all' },
        spec: { namespaces: ['shop'], serviceSelector: { matchLabels: { a: 'b' } } },
      }),
    ),
  },
  {
    code: 'PTL0304',
    says: /it is behind the broker here/,
    exitCode: 7,
    make: async ({ set }) => {
      set.killAgent('west');
      await exportService(set.home('east').admin, 'shop/new', { endpoints: ['10.1.0.9'] });
      await set.time.advance(5_000);
    },
    mend: async ({ set }) => {
      set.startAgent('west');
      await set.time.advance(90_000);
    },
  },
  {
    code: 'PTL0305',
    says: /it is exported and has no ready endpoint here/,
    exitCode: 0,
    make: async ({ set, desk }) => {
      await desk.home.create(serviceType, service('shop/idle'));
      await desk.home.create(serviceExportType, serviceExport('shop/idle'));
      await set.time.advance(10_000);
    },
    mend: async ({ set, desk }) => {
      await desk.home.delete(serviceExportType, { namespace: 'shop', name: 'idle' });
      await set.time.advance(10_000);
    },
  },
  {
    code: 'PTL0401',
    says: /10\.7\.0\.0\/16 .* overlaps 10\.7\.1\.0\/24/,
    exitCode: 7,
    make: ({ set }) => ranges(set, ['10.7.0.0/16', '10.1.0.0/16'], ['10.7.1.0/24', '10.2.0.0/16']),
    mend: ({ set }) => ranges(set, ['10.7.0.0/16', '10.1.0.0/16'], ['10.8.1.0/24', '10.2.0.0/16']),
  },
  {
    code: 'PTL0402',
    says: /2 of 2 addresses are taken/,
    exitCode: 0,
    make: async ({ set, desk }) => {
      const addressRanges = { peers: ['241.0.0.0/31'] };
      const body = { spec: { addressRanges } };
      await set.broker.admin.patch(clusterSetType, { namespace: setName, name: setName }, { kind: 'merge', body });
      for (const address of ['241.0.0.0', '241.0.0.1'])
        await desk.home.create(addressClaimType, {
          apiVersion: 'portolan.dev/v1alpha1',
          kind: 'AddressClaim',
          metadata: { name: address },
          spec: { address, owner: { kind: 'PeerService', namespace: 'portolan-system', name: 'x' } },
        } as unknown as AnyObject);
    },
    mend: async ({ desk }) => void (await desk.home.delete(addressClaimType, { name: '241.0.0.0' })),
  },
  { code: 'PTL0202', says: /it has not reported for/, exitCode: 7, ...silentPart('agent') },
  { code: 'PTL0501', says: /it has not reported for/, exitCode: 7, ...silentPart('dns') },
  { code: 'PTL0505', says: /it has not reported for/, exitCode: 7, ...silentPart('authority') },
  { code: 'PTL0601', says: /it has not reported for/, exitCode: 7, ...silentPart('peering') },
  { code: 'PTL0902', says: /it has not reported for/, exitCode: 7, ...silentPart('proxy') },
  { code: 'PTL0902', says: /it has not reported for/, exitCode: 7, ...silentPart('xds') },
  {
    code: 'PTL0502',
    says: /dns on n1: it answers clusterset\.local from old data: the home is away/,
    exitCode: 7,
    ...answeringPart(
      'dns',
      { stale: ['clusterset.local'], staleWhy: 'the home is away', ...explained('0.0.0.0') },
      { stale: [], ...explained('0.0.0.0') },
    ),
  },
  {
    code: 'PTL0503',
    says: /checkout\.shop\.svc\.clusterset\.local \(shop\/checkout\) at dns on n1: it answers 0\.0\.0\.0, expected 24/,
    exitCode: 7,
    ...answeringPart('dns', explained('0.0.0.0'), async ({ desk }) => {
      const { spec } = await desk.home.get<ServiceImport>(serviceImportType, ref);
      return explained(spec.ips![0]!);
    }),
  },
  {
    code: 'PTL0901',
    says: /shop\/checkout from proxy on n1: 243\.0\.0\.1:80: 3 refused/,
    exitCode: 7,
    ...answeringPart('proxy', { problems: ['243.0.0.1:80: 3 refused'] }, { problems: [] }),
  },
  {
    code: 'PTL0504',
    says: /resolver of cluster west.*Pending: its Cluster names no resolver endpoint/,
    exitCode: 0,
    ...object(
      'broker',
      federationType,
      { metadata: { name: 'world', namespace: setName }, spec: {} },
      {
        stubZones: [{ cluster: 'west', state: 'Pending', message: 'its Cluster names no resolver endpoint' }],
        conditions: [
          { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
        ],
      },
    ),
  },
  {
    code: 'PTL0505',
    says: /no authority has written its status/,
    exitCode: 7,
    ...object('broker', federationType, { metadata: { name: 'world', namespace: setName }, spec: {} }),
  },
  {
    code: 'PTL0601',
    says: /there are 1 Peers and no peering process reports/,
    exitCode: 7,
    ...object('home', peerType, peer('acme')),
  },
  {
    code: 'PTL0602',
    says: /taking refused: wrong certificate/,
    exitCode: 7,
    ...object('home', peerType, peer('acme'), { consumer: { state: 'Refused', message: 'wrong certificate' } }),
  },
  {
    code: 'PTL0603',
    says: /it is away \(connection refused\); its 3 services are withdrawn in 86300 s/,
    exitCode: 7,
    ...object('home', peerType, peer('acme'), {
      consumer: { state: 'Stale', message: 'connection refused', services: 3, awaySeconds: 100 },
    }),
  },
  {
    code: 'PTL0604',
    says: /it selects no Service of its namespace/,
    exitCode: 0,
    ...object('home', peerExportType, {
      metadata: { name: 'all', namespace: 'shop' },
      spec: { services: ['nosuch'], peers: ['acme'] },
    }),
  },
  {
    code: 'PTL0604',
    says: /there is no Peer nobody/,
    exitCode: 0,
    ...object('home', peerExportType, {
      metadata: { name: 'all', namespace: 'shop' },
      spec: { services: ['checkout'], peers: ['nobody'] },
    }),
  },
  {
    code: 'PTL0701',
    says: /its clock is 60s ahead of this machine's|its clock is \d+s ahead/,
    exitCode: 7,
    make: async ({ homes }) => {
      homes.clockOffMs = 60_000;
    },
    mend: async ({ homes }) => {
      homes.clockOffMs = 0;
    },
  },
  { code: 'PTL0702', says: /it expired /, exitCode: 7, ...tls('portolan-peering-tls', -10 * dayMs, -dayMs) },
  { code: 'PTL0703', says: /it ends /, exitCode: 0, ...tls('portolan-peering-tls', -99 * dayMs, dayMs) },
  {
    code: 'PTL0703',
    says: /certificate of proxy sidecar~west~web: it ends /,
    exitCode: 0,
    make: async (scene) => {
      const nowMs = scene.desk.deps.world.clock.wallMs();
      const ending = [{ proxy: 'sidecar~west~web', startMs: nowMs - 99 * dayMs, endMs: nowMs + dayMs }];
      const lease = partLease(scene, 'xds', { ageMs: 1000 });
      const annotations = { ...lease.metadata.annotations, [endingAnnotation]: formatEnding(ending) };
      await scene.desk.home.create(leaseType, { ...lease, metadata: { ...lease.metadata, annotations } });
    },
    mend: silentPart('xds').mend,
  },
  {
    code: 'PTL0801',
    says: /it runs 0\.0\.1, this program is /,
    exitCode: 0,
    make: async (scene) =>
      void (await scene.desk.home.create(leaseType, partLease(scene, 'agent', { ageMs: 1000, theirs: '0.0.1' }))),
    mend: silentPart('agent').mend,
  },
];

function exportWithoutService(): Pick<Case, 'make' | 'mend'> {
  const [apiVersion, kind] = ['multicluster.x-k8s.io/v1beta1', 'ServiceExport'];
  const metadata = { namespace: 'shop', name: 'ghost' };
  return {
    make: async ({ desk, set }) => {
      await desk.home.create(serviceExportType, { apiVersion, kind, metadata } as AnyObject);
      await set.time.advance(10_000);
    },
    mend: async ({ desk, set }) => {
      await desk.home.create(serviceType, service('shop/ghost'));
      await set.time.advance(10_000);
    },
  };
}

function withTime({ make, mend }: Pick<Case, 'make' | 'mend'>): Pick<Case, 'make' | 'mend'> {
  return {
    make: async (scene) => {
      await make(scene);
      await scene.set.time.advance(10_000);
    },
    mend,
  };
}

async function changePort(set: SimClusterSet, desk: CommandDesk, port: number): Promise<void> {
  const body = { spec: { ports: [{ name: 'http', port }] } };
  await desk.home.patch(serviceType, ref, { kind: 'merge', body });
  await set.time.advance(20_000);
}

async function limit(set: SimClusterSet, desk: CommandDesk, to: string | null): Promise<void> {
  const body = { metadata: { annotations: { 'portolan.dev/export-to': to } } };
  await desk.home.patch(serviceExportType, ref, { kind: 'merge', body });
  await set.time.advance(20_000);
}

async function ranges(set: SimClusterSet, east: string[], west: string[]): Promise<void> {
  for (const [name, allowedRanges] of Object.entries({ east, west })) {
    const body = { spec: { allowedRanges } };
    await set.broker.admin.patch(clusterType, { namespace: setName, name }, { kind: 'merge', body });
  }
  await set.time.advance(20_000);
}

test('doctor: nothing is wrong -> no finding, everything was checked, exit code 0', async () => {
  const scene = await open();
  const found = await doctor(scene);
  expect(found).toMatchObject({ complete: true, findings: [], exitCode: 0 });
  const why = (part: string) => `no ${part} reports in this cluster, so none could be asked`;
  expect(found.skipped).toEqual([
    { code: 'PTL0502', cluster: 'west', why: why('dns'), isIdle: true },
    { code: 'PTL0503', cluster: 'west', why: why('dns'), isIdle: true },
    { code: 'PTL0901', cluster: 'west', why: why('proxy'), isIdle: true },
  ]);
});

describe('doctor: a fault made on purpose -> its code with the next step; mended -> it is gone', () => {
  test.each(cases.map((one, index) => [`${one.code} (${index + 1})`, one] as const))('%s', async (_name, one) => {
    const scene = await open();
    await one.make(scene);
    const found = await doctor(scene);
    const mine = found.findings.filter(({ code }) => code === one.code);
    expect(mine, JSON.stringify(found)).not.toEqual([]);
    expect(mine.map(({ subject, message }) => `${subject}: ${message}`).join('\n')).toMatch(one.says);
    for (const { fix, docs, means } of mine) expect([fix, docs, means]).not.toContain('');
    expect(found.exitCode).toBe(one.exitCode);
    await one.mend(scene);
    const after = await doctor(scene);
    expect(after.findings.filter(({ code }) => code === one.code)).toEqual([]);
  });
});

test('doctor: --fail-on warning -> a warning ends with 7', async () => {
  const scene = await open();
  await cases.find(({ code }) => code === 'PTL0801')!.make(scene);
  expect(await doctor(scene)).toMatchObject({ exitCode: 0 });
  expect(await doctor(scene, ' --fail-on warning')).toMatchObject({ exitCode: 7 });
});

test('doctor: several kubeconfigs, one home away -> both in one document, what could not be checked is listed', async () => {
  const scene = await open();
  const { desk, set } = scene;
  desk.files.set(
    'east',
    desk.files.get('home.kubeconfig')!.replaceAll('https://west', 'https://east').replaceAll('home', 'east'),
  );
  set.home('east').kill();
  const found = await doctor(scene, ' --kubeconfig home.kubeconfig east');
  expect(found.clusters).toEqual([
    { cluster: 'west', reached: true },
    { cluster: 'east', reached: false },
  ]);
  expect(found.findings.map(({ code, cluster }) => `${code} ${cluster}`)).toContain('PTL0101 east');
  expect(found.skipped.every(({ cluster, why, isIdle }) => isIdle || (cluster === 'east' && why !== ''))).toBe(true);
  expect(found).toMatchObject({ complete: false, exitCode: 7 });
});

test('doctor: at the broker -> its members are checked from there', async () => {
  const scene = await open();
  const { desk, set } = scene;
  desk.files.set(
    'broker',
    desk.files.get('home.kubeconfig')!.replaceAll('https://west', 'https://broker').replaceAll('home', 'broker'),
  );
  expect(await doctor(scene, ' --kubeconfig broker')).toMatchObject({ findings: [], exitCode: 0 });
  set.killAgent('east');
  await set.time.advance(60_000);
  const { findings } = await doctor(scene, ' --kubeconfig broker');
  expect(findings.map(({ code, subject }) => `${code} ${subject}`)).toEqual(['PTL0202 agent of cluster east']);
});

test('doctor: the credentials for the broker were not renewed in time -> a warning before they end, an error after', async () => {
  const scene = await open();
  const { desk } = scene;
  const nowMs = desk.deps.world.clock.wallMs();
  const write = async (issuedMs: number, endMs: number) => {
    const text = (ms: number) => Buffer.from(new Date(nowMs + ms).toISOString()).toString('base64');
    const body = { data: { 'token-issued-at': text(issuedMs), 'token-expires-at': text(endMs) } };
    await desk.home.patch(secretType, membershipRef, { kind: 'merge', body });
    return (await doctor(scene)).findings.map(({ code, severity }) => `${code} ${severity}`);
  };
  expect(await write(-dayMs, 9 * dayMs)).toEqual([]);
  expect(await write(-9 * dayMs, dayMs)).toEqual(['PTL0204 warning']);
  expect(await write(-9 * dayMs, -dayMs)).toEqual(['PTL0204 error']);
});
