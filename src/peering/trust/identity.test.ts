// The source of our certificate: made at the first start, kept in Secrets, or read from files that are rotated.

import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { coversHosts } from '../../base/x509/certificates.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { authoritySecret, certificateSecret } from '../kinds/secrets.ts';
import { memoryHome, namespace } from '../testing/edge/memory-home.ts';
import { meshOf } from '../testing/edge/mesh.ts';
import { type IdentityOptions, openIdentity } from './identity.ts';
import { identitiesOf } from './trust.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Time that the test moves on; looks happen when it says so. */
async function setUp(changes: Partial<IdentityOptions> = {}) {
  const home = await memoryHome();
  closing.push(() => home.stop());
  const real = createRealWorld();
  const clock = { offsetMs: 0 };
  const looks: (() => void)[] = [];
  const world = {
    ...real,
    clock: { wallMs: () => real.clock.wallMs() + clock.offsetMs, monotonicMs: () => real.clock.monotonicMs() },
    timers: {
      after: (_delayMs: number, run: () => void) => {
        looks.push(run);
        return { cancel() {} };
      },
    },
  };
  const { client } = home;
  const options = () => ({ world, log: silentLog, client, namespace, trustDomain: 'acme.example', ...changes });
  return { client, clock, looks, options, open: () => openIdentity(options()) };
}

test('identity: the first start -> an authority and a certificate with our SPIFFE identity, kept for the next', async () => {
  const { open, client } = await setUp();
  const identity = await open();
  const certificate = new X509Certificate(identity.current()!.certificate);
  expect(identitiesOf(certificate)).toEqual(['spiffe://acme.example/portolan/peering']);
  expect(certificate.checkIssued(new X509Certificate(identity.bundle()))).toBe(true);
  expect((await open()).current()?.certificate).toBe(identity.current()?.certificate);
  await client.get(secretType, { namespace, name: authoritySecret });
});

test('identity: its Secrets are in the namespace of an earlier version -> the same authority and certificate, kept apart from then on', async () => {
  const { open, options, client } = await setUp();
  const before = await open();
  const apart = { ...options(), namespace: 'portolan-peering', formerNamespace: namespace };
  await client.create(
    { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'portolan-peering' } },
  );
  const after = await openIdentity(apart);
  expect([after.bundle(), after.current()?.key]).toEqual([before.bundle(), before.current()?.key]);
  for (const name of [authoritySecret, certificateSecret]) {
    await client.get(secretType, { namespace: 'portolan-peering', name });
    await client.delete(secretType, { namespace, name });
  }
  expect((await openIdentity(apart)).current()?.key).toBe(before.current()?.key);
});

test('identity: names and addresses that clients reach us at -> in the certificate, also those of another process', async () => {
  const first = await setUp({ hosts: ['peering.acme.example', '192.0.2.7'] });
  const certificate = new X509Certificate((await first.open()).current()!.certificate);
  expect(certificate.checkHost('peering.acme.example')).toBe('peering.acme.example');
  expect(certificate.checkIP('192.0.2.7')).toBe('192.0.2.7');
  expect(identitiesOf(certificate)).toEqual(['spiffe://acme.example/portolan/peering']);
  const second = await openIdentity({ ...first.options(), hosts: ['2001:db8::7'] });
  const both = second.current()!.certificate;
  expect(coversHosts(both, ['peering.acme.example', '192.0.2.7', '2001:db8::7'])).toBe(true);
  expect((await first.open()).current()!.certificate).toBe(both);
});

test('identity: two thirds of its time are over -> renewed from the same authority, and told', async () => {
  const { open, clock, looks } = await setUp();
  const identity = await open();
  const before = identity.current()?.certificate;
  const bundle = identity.bundle();
  let told = 0;
  identity.onChanged(() => (told += 1));
  clock.offsetMs = 25 * 24 * 3_600_000;
  looks.shift()?.();
  await expect.poll(() => told).toBe(1);
  expect(identity.current()?.certificate).not.toBe(before);
  expect(identity.bundle()).toBe(bundle);
});

test('identity: somebody else keeps the Secret -> used as it is, followed, never renewed by us', async () => {
  const { open, clock, looks, client } = await setUp();
  const mesh = meshOf('acme.example');
  const put = (pair: { certificate: string; key: string }) => ({
    'tls.crt': pair.certificate,
    'tls.key': pair.key,
    'ca.crt': mesh.certificate,
  });
  const first = mesh.issue();
  await client.create(secretType, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: certificateSecret, namespace },
    type: 'kubernetes.io/tls',
    stringData: put(first),
  });
  const identity = await open();
  expect(identity.current()?.certificate).toBe(first.certificate);
  clock.offsetMs = 365 * 24 * 3_600_000;
  const second = mesh.issue();
  const body = { stringData: put(second) };
  await client.patch(secretType, { namespace, name: certificateSecret }, { kind: 'merge', body });
  looks.shift()?.();
  await expect.poll(() => identity.current()?.certificate).toBe(second.certificate);
});

test('identity: PEM files -> followed; a half-written one -> the good one stays', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'identity-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const files = { certificate: join(folder, 'c'), key: join(folder, 'k'), bundle: join(folder, 'b') };
  const mesh = meshOf('acme.example');
  const write = (pair: { certificate: string; key: string }) => {
    writeFileSync(files.certificate, pair.certificate);
    writeFileSync(files.key, pair.key);
    writeFileSync(files.bundle, mesh.certificate);
  };
  const first = mesh.issue();
  write(first);
  const { open, looks } = await setUp({ files });
  const identity = await open();
  writeFileSync(files.certificate, '-----BEGIN CERT');
  looks.shift()?.();
  await expect.poll(() => looks.length).toBe(1);
  expect(identity.current()?.certificate).toBe(first.certificate);
  const second = mesh.issue();
  write(second);
  looks.shift()?.();
  await expect.poll(() => identity.current()?.certificate).toBe(second.certificate);
});

test('identity: PEM files written one after the other -> the old pair until both are there, then the new one, and told', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'identity-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const files = { certificate: join(folder, 'c'), key: join(folder, 'k'), bundle: join(folder, 'b') };
  const mesh = meshOf('acme.example');
  const [first, second] = [mesh.issue(), mesh.issue()];
  writeFileSync(files.certificate, first.certificate);
  writeFileSync(files.key, first.key);
  writeFileSync(files.bundle, mesh.certificate);
  const { open, looks } = await setUp({ files });
  const identity = await open();
  const told: string[] = [];
  identity.onChanged(() => told.push(identity.current()!.certificate));
  const look = async () => {
    looks.shift()?.();
    await expect.poll(() => looks.length).toBe(1);
  };
  writeFileSync(files.certificate, second.certificate);
  await look();
  expect(identity.current()).toMatchObject(first);
  expect(told).toEqual([]);
  writeFileSync(files.key, second.key);
  await look();
  expect(identity.current()).toMatchObject(second);
  expect(told).toEqual([second.certificate]);
});

test('identity: files that are no pair at the first start -> said, and nothing is served with them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'identity-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const files = { certificate: join(folder, 'c'), key: join(folder, 'k'), bundle: join(folder, 'b') };
  const mesh = meshOf('acme.example');
  writeFileSync(files.certificate, mesh.issue().certificate);
  writeFileSync(files.key, mesh.issue().key);
  writeFileSync(files.bundle, mesh.certificate);
  const { open } = await setUp({ files });
  await expect(open()).rejects.toThrow('our certificate for peers: the key is not that of the certificate');
});
