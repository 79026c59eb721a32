import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { createRealWorld } from '../../base/real/world.ts';
import type { World } from '../../base/world.ts';
import { coversHosts, isIssuedBy } from '../../base/x509/certificates.ts';
import { parseKubeconfig } from './kubeconfig.ts';
import { openPki, type Pki, servingHosts } from './pki.ts';

const dayMs = 24 * 60 * 60 * 1000;
const hosts = servingHosts({ host: '10.0.0.7', hostname: 'box', extra: ['api.example'] });
const server = 'https://127.0.0.1:6443';

function open(world: World, more: { directory?: string; hosts?: readonly string[] } = {}): Promise<Pki> {
  return openPki({ world, directory: '/data', hosts, log: silentLog, ...more });
}

describe('pki: on a real disk', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'portolan-pki-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  test('pki: first start -> an authority, keys and a kubeconfig that only their owner can read', async () => {
    const pki = await open(createRealWorld(), { directory });
    const kubeconfig = await pki.adminKubeconfig({ server });
    pki.close();
    const modeOf = (name: string) => statSync(join(directory, name)).mode & 0o777;
    expect(kubeconfig).toBe(join(directory, 'admin.kubeconfig'));
    for (const name of ['pki/ca.key', 'pki/server.key', 'pki/service-account.key', 'admin.kubeconfig']) {
      expect([name, modeOf(name)]).toEqual([name, 0o600]);
    }
    const authority = new X509Certificate(readFileSync(join(directory, 'pki/ca.crt')));
    expect(authority.ca).toBe(true);
    expect(Date.parse(authority.validTo) - Date.now()).toBeGreaterThan(9 * 365 * dayMs);
    const content = parseKubeconfig(readFileSync(kubeconfig, 'utf8'));
    expect(content?.server).toBe(server);
    const admin = new X509Certificate(content?.clientCertificate ?? '');
    expect(admin.toLegacyObject().subject).toMatchObject({ CN: 'admin', O: 'system:masters' });
    expect(isIssuedBy(content?.clientCertificate ?? '', content?.certificateAuthority ?? '')).toBe(true);
  });

  test('pki: second start -> the same authority, certificate and kubeconfig', async () => {
    const before = await open(createRealWorld(), { directory });
    const kubeconfig = await before.adminKubeconfig({ server });
    const content = readFileSync(kubeconfig, 'utf8');
    before.close();
    const after = await open(createRealWorld(), { directory });
    await after.adminKubeconfig({ server });
    after.close();
    expect(after.clientCa).toBe(before.clientCa);
    expect(after.serverCredentials()).toEqual(before.serverCredentials());
    expect(after.serviceAccountKey).toBe(before.serviceAccountKey);
    expect(readFileSync(kubeconfig, 'utf8')).toBe(content);
  });

  test('pki: the authority without its key -> refuses to start and says what to do', async () => {
    (await open(createRealWorld(), { directory })).close();
    unlinkSync(join(directory, 'pki/ca.key'));
    await expect(open(createRealWorld(), { directory })).rejects.toThrow(/ca\.key.*put it back, or remove both/);
  });

  test.each(['ca.crt', 'ca.key', 'service-account.key'])(
    'pki: %s is damaged -> refuses to start and names it',
    async (name) => {
      (await open(createRealWorld(), { directory })).close();
      writeFileSync(join(directory, 'pki', name), 'not a pem');
      await expect(open(createRealWorld(), { directory })).rejects.toThrow(/pki\/.*cannot be read as PEM/);
    },
  );

  test('pki: the serving certificate is damaged -> a new one, nothing else changes', async () => {
    const before = await open(createRealWorld(), { directory });
    before.close();
    writeFileSync(join(directory, 'pki/server.crt'), 'not a pem');
    const after = await open(createRealWorld(), { directory });
    after.close();
    expect(after.clientCa).toBe(before.clientCa);
    expect(isIssuedBy(after.serverCredentials().certificate, before.clientCa)).toBe(true);
  });
});

describe('pki: over time', () => {
  test('pki: hosts -> the listen address, the loopback names, the machine and the extra ones are covered', async () => {
    const pki = await open(new Simulation({ seed: 1 }).world('home'));
    pki.close();
    const wanted = ['10.0.0.7', 'localhost', '127.0.0.1', '::1', 'box', 'api.example'];
    expect(coversHosts(pki.serverCredentials().certificate, wanted)).toBe(true);
    expect(servingHosts({ host: '0.0.0.0', hostname: 'box' })).toEqual(['localhost', '127.0.0.1', '::1', 'box']);
  });

  test('pki: started with another host -> a certificate that covers it', async () => {
    const world = new Simulation({ seed: 1 }).world('home');
    const before = await open(world);
    before.close();
    const after = await open(world, { hosts: [...hosts, 'new.example'] });
    after.close();
    expect(after.serverCredentials().certificate).not.toBe(before.serverCredentials().certificate);
    expect(coversHosts(after.serverCredentials().certificate, ['new.example'])).toBe(true);
  });

  test('pki: two thirds of the life of the serving certificate are over -> renewed, told and kept', async () => {
    const simulation = new Simulation({ seed: 1 });
    const world = simulation.world('home');
    const pki = await open(world);
    const first = pki.serverCredentials();
    const told: string[] = [];
    pki.onRenewed((credentials) => told.push(credentials.certificate));
    await simulation.time.advance(240 * dayMs);
    expect(told).toEqual([]);
    await simulation.time.advance(5 * dayMs);
    expect(told).toEqual([pki.serverCredentials().certificate]);
    expect(pki.serverCredentials().certificate).not.toBe(first.certificate);
    await simulation.time.advance(245 * dayMs);
    expect(told.length).toBe(2);
    pki.close();
    const reopened = await open(world);
    reopened.close();
    expect(reopened.serverCredentials().certificate).toBe(told[1]);
  });

  test('pki: the disk is full when it renews -> the new certificate is used all the same', async () => {
    const simulation = new Simulation({ seed: 1 });
    const world = simulation.world('home');
    let isFull = false;
    const disk = {
      ...world.disk,
      write: (path: string, bytes: Uint8Array) =>
        isFull ? Promise.reject(new Error('no space left on device')) : world.disk.write(path, bytes),
    };
    const pki = await open({ ...world, disk });
    const first = pki.serverCredentials().certificate;
    isFull = true;
    await simulation.time.advance(250 * dayMs);
    pki.close();
    expect(pki.serverCredentials().certificate).not.toBe(first);
  });

  test('pki: admin kubeconfig near its end, for another server or broken -> written anew; otherwise kept', async () => {
    const simulation = new Simulation({ seed: 1 });
    const world = simulation.world('home');
    const pki = await open(world);
    const written = async (url = server) => {
      const path = await pki.adminKubeconfig({ server: url });
      return Buffer.from((await world.disk.read(path)) ?? []).toString();
    };
    const first = await written();
    expect(await written()).toBe(first);
    const moved = await written('https://127.0.0.1:7443');
    expect(parseKubeconfig(moved)?.server).toBe('https://127.0.0.1:7443');
    await simulation.time.advance(250 * dayMs);
    const renewed = await written('https://127.0.0.1:7443');
    expect(renewed).not.toBe(moved);
    await world.disk.write('/data/admin.kubeconfig', Buffer.from('{'));
    expect(parseKubeconfig(await written())?.server).toBe(server);
    pki.close();
  });

  test('pki: a client certificate -> names its user and groups, for as long as asked', async () => {
    const world = new Simulation({ seed: 1 }).world('home');
    const pki = await open(world);
    pki.close();
    const client = pki.signClient({ commonName: 'ann', organizations: ['dev'], lifetimeMs: dayMs });
    const parsed = new X509Certificate(client.certificate);
    expect(parsed.toLegacyObject().subject).toMatchObject({ CN: 'ann', O: 'dev' });
    expect(Date.parse(parsed.validTo)).toBe(world.clock.wallMs() + dayMs);
    expect(isIssuedBy(client.certificate, pki.clientCa)).toBe(true);
  });
});
