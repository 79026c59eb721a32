// Commands that look at several clusters at once, over a running demo: doctor, trace, and a bug report that is searched for every
// secret of every home.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { spellingsOf } from '../src/cli/bug-report/scrub.ts';
import type { Step } from '../src/cli/trace/steps.ts';
import type { Diagnosis } from '../src/doctor/diagnosis.ts';
import { meshExternalServiceType } from '../src/external/kinds/mesh-external-service.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { type ConfigMap, configMapType } from '../src/kube/objects/config-map.ts';
import type { AnyObject } from '../src/kube/objects/object.ts';
import { type Secret, secretType } from '../src/kube/objects/secret.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { meshCardName } from '../src/peering/rules/peer-introduction.ts';
import { type PortolanProcess, runPortolan, startPortolan } from './support/portolan.ts';

const homes = ['broker', 'east', 'west', 'south', 'acme'];
const directory = mkdtempSync(join(tmpdir(), 'portolan-reports-'));
const world = createRealWorld();
let demo: PortolanProcess;
const clients = new Map<string, Client>();

const kubeconfig = (home: string) => join(directory, home, 'admin.kubeconfig');
const kubeconfigs = (...names: string[]) => ['--kubeconfig', ...names.map(kubeconfig)];

beforeAll(async () => {
  demo = startPortolan(['demo', '--dir', directory]);
  while (!/^ready$/m.test(demo.out())) await new Promise((resolve) => setTimeout(resolve, 100));
  for (const home of homes) {
    const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: kubeconfig(home) });
    clients.set(home, createClient(world.network.http(access), { world, userAgent: 'test' }));
  }
}, 60_000);

afterAll(async () => {
  for (const client of clients.values()) client.close();
  await demo.stop();
  rmSync(directory, { recursive: true, force: true });
});

test('doctor over the demo -> every resolver and proxy was asked through its home, only the conflict and what nothing carries are found', async () => {
  const { out, code } = await runPortolan(['doctor', '-o', 'json', ...kubeconfigs('east', 'west', 'south')]);
  const { findings, skipped, complete } = JSON.parse(out) as Diagnosis;
  expect(new Set(findings.map(({ code: found }) => found))).toEqual(
    new Set(['PTL0302', 'PTL0507', 'PTL0605', 'PTL0903', 'PTL0904']),
  );
  const unserved = findings.filter(({ code: found }) => found === 'PTL0903');
  expect(unserved.map(({ cluster }) => cluster).sort()).toEqual(['east', 'south']);
  expect(skipped.map(({ code: skippedCode, cluster }) => `${skippedCode} ${cluster}`)).toEqual([
    'PTL0901 east',
    'PTL0901 south',
  ]);
  expect([complete, code]).toEqual([true, 0]);
});

test('trace over the demo -> from three exports to the answer and a connection, each step with its time', async () => {
  const words = ['trace', 'shop/checkout', '--from', 'west', '-o', 'json', ...kubeconfigs('west', 'east', 'south')];
  const { out, code } = await runPortolan(words);
  const { steps, isWhole } = JSON.parse(out) as { steps: Step[]; isWhole: boolean };
  const count = (step: Step['step']) => steps.filter((one) => one.step === step && one.state === 'ok').length;
  expect(['export', 'endpoints', 'record', 'slices'].map((step) => count(step as Step['step']))).toEqual([3, 3, 3, 3]);
  expect(['merged', 'import', 'answer', 'carried', 'connection'].map((step) => count(step as Step['step']))).toEqual([
    1, 1, 1, 1, 1,
  ]);
  for (const { at } of steps) expect(Date.parse(at!)).toBeGreaterThan(Date.parse('2020-01-01'));
  expect([isWhole, code]).toEqual([true, 0]);
});

test('dig of a federated name with home and broker -> the resolver, then the authority, each through its home', async () => {
  const words = ['dig', 'checkout.shop.world.svc.federation', '-o', 'json', ...kubeconfigs('west')];
  const { out, code } = await runPortolan([...words, '--broker-kubeconfig', kubeconfig('broker')]);
  const explained = JSON.parse(out);
  expect([code, explained.handler, explained.authority.handler]).toEqual([0, 'stub', 'authority']);
  expect(explained.authority.records[0]).toMatchObject({
    sources: expect.arrayContaining([expect.objectContaining({ cluster: 'west' })]),
  });
  const alone = await runPortolan(words);
  expect([alone.code, JSON.parse(alone.out).authority]).toEqual([0, undefined]);
  const wrong = await runPortolan([...words, '--broker-kubeconfig', kubeconfig('south')]);
  expect([wrong.code, wrong.err]).toEqual([
    4,
    expect.stringMatching(/no authority reports at https:.*; start portolan authority there/),
  ]);
});

test('peer token of a mesh on loopback -> a warning with the next step, beside the token; of one that others reach -> the token alone', async () => {
  const token = (name: string) => runPortolan(['peer', 'token', name, '--allow', '*', ...kubeconfigs('west')]);
  const first = await token('one');
  expect([first.code, first.out]).toEqual([0, expect.stringMatching(/^portolan-peer-\S+\n$/)]);
  expect(first.err).toMatch(
    /^warning: other machines cannot reach 127\.0\.0\.1:\d+; start portolan peering with --advertise HOST:PORT/,
  );
  const ref = { namespace: 'portolan-system', name: meshCardName };
  const client = clients.get('west')!;
  const { data } = await client.get<ConfigMap>(configMapType, ref);
  const setAddress = (address: string) =>
    client.patch(configMapType, ref, { kind: 'merge', body: { data: { address } } });
  await setAddress('mesh.west.example:8008');
  const second = await token('two');
  await setAddress(data!['address']!);
  expect([second.code, second.err]).toEqual([0, '']);
});

const planted = 'Planted-9f2c7d1e-Secret-Value';
const plantedKey = `-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPlantedPlantedPlantedPlantedPlantedPlanted1\n-----END PRIVATE KEY-----\n`;

/** Where people put secrets that do not belong there. */
async function plantSecrets(client: Client): Promise<void> {
  const metadata = { name: 'planted', namespace: 'default' };
  const annotations = { 'example.com/key': plantedKey, 'example.com/password': planted };
  await client.create(secretType, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    stringData: { password: planted },
  } as AnyObject);
  await client.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { token: planted } });
  await client.create(serviceType, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...metadata, annotations, labels: { 'example.com/password': planted } },
    spec: { ports: [{ port: 80 }] },
  } as AnyObject);
  await client.create(meshExternalServiceType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'MeshExternalService',
    metadata: { name: 'planted', namespace: 'portolan-system', annotations },
    spec: {
      match: [{ type: 'Domain', value: 'planted.example', port: 443, protocol: 'http' }],
      destination: {
        type: 'Regular',
        endpoints: [{ address: 'planted.example', port: 443 }],
        tls: {
          enabled: true,
          verification: { skip: true },
          clientKey: { inlineString: plantedKey },
          clientCert: { inlineString: plantedKey },
        },
      },
    },
  } as unknown as AnyObject);
}

describe('bug-report', () => {
  let archive: Buffer;
  let secrets: string[];

  beforeAll(async () => {
    await plantSecrets(clients.get('west')!);
    const output = join(directory, 'report.tar.gz');
    const { code, err } = await runPortolan(['bug-report', ...kubeconfigs(...homes), '--output', output]);
    expect([code, err]).toEqual([0, '']);
    archive = readFileSync(output);
    secrets = [...(await secretsOf()), planted, plantedKey];
  }, 60_000);

  const secretsIn = (whole: string) =>
    secrets.filter((secret) => spellingsOf(secret).some((text) => text.length >= 8 && whole.includes(text)));

  test('bug-report over the demo -> no key, token or secret value of any home is in it, however it is spelled', () => {
    expect(secrets.length).toBeGreaterThan(30);
    const whole = `${archive.toString('latin1')}\n${gunzipSync(archive).toString('latin1')}`;
    expect(secretsIn(whole)).toEqual([]);
    // The search itself finds what is there.
    expect(spellingsOf('clusterset').some((text) => whole.includes(text))).toBe(true);
  });

  // Each of them reads all objects of a home, Secrets and the planted service among them.
  test.each([
    'doctor',
    'doctor -o json',
    'status -o wide',
    'status -o json',
    'explain connection --to 10.0.0.1:443 --host planted.example -o json',
  ])('%s over the demo -> no key, token or secret value of any home is printed', async (words) => {
    const { out, err } = await runPortolan([...words.split(' '), ...kubeconfigs('west')]);
    expect(out.length).toBeGreaterThan(10);
    expect(secretsIn(`${out}${err}`)).toEqual([]);
  });

  test('bug-report over the demo -> one folder for each home with findings, objects, and the health of its parts', () => {
    const listed = execFileSync('tar', ['-tzf', '-'], { input: archive, encoding: 'utf8' }).trim().split('\n');
    for (const [index, home] of homes.entries()) {
      const folder = listed.find((path) => path.startsWith(`${index + 1}-`))!.split('/')[0];
      expect(listed, home).toContain(`${folder}/doctor.json`);
      expect(listed, home).toContain(`${folder}/objects/leases.json`);
    }
    expect(
      listed.filter((path) => /^3-.*\/parts\/portolan-(dns|proxy)-.*\/(readyz|status|metrics)\.txt$/.test(path)).length,
    ).toBe(6);
    const read = (path: string) => execFileSync('tar', ['-xzOf', '-', path], { input: archive, encoding: 'utf8' });
    const imports = JSON.parse(read(listed.find((path) => /^3-.*serviceimports/.test(path))!));
    expect(imports.items.map((one: { metadata: { name: string } }) => one.metadata.name)).toContain('checkout');
  });
});

/** Not secret, though they lie in a Secret: other objects and commands show them too. */
const openKeys =
  /^(clusterset|cluster-id|namespace|account-.*|server|token-(issued|expires)-at|ca\.crt|certificate-authority|.*\.crt)$/;

async function secretsOf(): Promise<string[]> {
  const values: string[] = [];
  for (const home of homes) {
    const pki = join(directory, home, 'pki');
    for (const name of readdirSync(pki)) if (name.endsWith('.key')) values.push(readFileSync(join(pki, name), 'utf8'));
    const text = readFileSync(kubeconfig(home), 'utf8');
    for (const [, data] of text.matchAll(/(?:client-key-data|token): (\S+)/g))
      values.push(data!, Buffer.from(data!, 'base64').toString('utf8'));
    const { items } = await clients.get(home)!.list<Secret>(secretType, {});
    for (const { data } of items)
      for (const [key, value] of Object.entries(data ?? {}))
        if (!openKeys.test(key)) values.push(Buffer.from(value, 'base64').toString('utf8'));
  }
  return [...new Set(values)].filter((value) => value.trim().length >= 8);
}
