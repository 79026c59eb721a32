// Obstacles to an installation, on real API servers: reported before anything is changed.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { asArgs } from '../support/kubectl.ts';
import { runPortolan } from '../support/portolan.ts';
import { KubernetesApiServer } from './api-server.ts';
import { addService, until } from './flows.ts';
import { startFlowHome, system } from './homes.ts';
import { RunningParts } from './parts.ts';
import { sayingVersion } from './saying-version.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-before-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const typed = (line: string, kubeconfig: string) => runPortolan([...asArgs(line), '--kubeconfig', kubeconfig]);

/** A definition of ours as another implementation would have made it. */
function foreign(name: string, versions: readonly string[], storage: string): string {
  const definition = parse(readFileSync(`deploy/crds/${name}.yaml`, 'utf8'));
  delete definition.metadata.labels;
  definition.metadata.annotations = { 'api-approved.kubernetes.io': 'https://example.test' };
  definition.spec.versions = definition.spec.versions
    .filter((version: { name: string }) => versions.includes(version.name))
    .map((version: { name: string; schema: { openAPIV3Schema: object } }) => ({
      ...version,
      storage: version.name === storage,
      additionalPrinterColumns: [],
      schema: { openAPIV3Schema: { ...version.schema.openAPIV3Schema, description: `${name} of somebody else` } },
    }));
  const file = join(directory, `${name}-${versions.join('-')}-${storage}.yaml`);
  writeFileSync(file, stringify(definition, { aliasDuplicateObjects: false }));
  return file;
}

describe('definitions of another implementation', () => {
  let api: KubernetesApiServer;
  beforeAll(async () => {
    api = await KubernetesApiServer.start();
  });
  afterAll(() => api?.stop());
  const isUntouched = () =>
    !api.kubectl('get', 'namespaces', '-o', 'name').includes(system) &&
    !api.kubectl('get', 'crds', '-o', 'name').includes('portolan.dev');

  test('they serve v1alpha1 alone -> install and join are refused, and nothing is changed', async () => {
    api.kubectl('create', '-f', foreign('serviceexports', ['v1alpha1'], 'v1alpha1'));
    const { code, err } = await typed('install', api.kubeconfig);
    expect([code, err]).toEqual([
      5,
      expect.stringContaining('belongs to another implementation and serves v1alpha1, not v1beta1'),
    ]);
    expect(isUntouched()).toBe(true);
  });

  test('they serve v1beta1 too -> a note says whose they are; they stay as they are', async () => {
    api.kubectl('replace', '-f', foreign('serviceexports', ['v1alpha1', 'v1beta1'], 'v1alpha1'));
    const { code, out } = await typed('install', api.kubeconfig);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^note: definition serviceexports\.multicluster\.x-k8s\.io belongs to another implementation and is kept/,
    );
    const path = 'jsonpath={.status.storedVersions}';
    expect(api.kubectl('get', 'crd', 'serviceexports.multicluster.x-k8s.io', '-o', path)).toBe('["v1alpha1"]');
  });

  test('they become ours by applying deploy/crds -> objects are stored in the new version', async () => {
    const exported = {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceExport',
      metadata: { name: 'web', namespace: 'default' },
    };
    const file = join(directory, 'export.json');
    writeFileSync(file, JSON.stringify(exported));
    api.kubectl('create', '-f', file);
    const stored = () => api.stored('/registry/multicluster.x-k8s.io/serviceexports/default/web');
    expect(await stored()).toContain('multicluster.x-k8s.io/v1alpha1');
    api.kubectl('apply', '--server-side', '--force-conflicts', '-f', 'deploy/crds/serviceexports.yaml');
    const versions = () =>
      api.kubectl('get', 'crd', 'serviceexports.multicluster.x-k8s.io', '-o', 'jsonpath={.status.storedVersions}');
    await until('both are stored', () => versions() === '["v1alpha1","v1beta1"]');
    const { code, err } = await typed('upgrade', api.kubeconfig);
    expect([code, err]).toEqual([0, '']);
    expect(versions()).toBe('["v1beta1"]');
    expect(await stored()).toContain('multicluster.x-k8s.io/v1beta1');
  });

  test('a version that we no longer have -> goes after its objects were written anew', async () => {
    const name = 'addressclaims.portolan.dev';
    const old = parse(readFileSync('deploy/crds/addressclaims.yaml', 'utf8'));
    const [version] = old.spec.versions;
    old.spec.versions = [
      { ...version, storage: false },
      { ...version, name: 'v1alpha0', storage: true },
    ];
    const file = join(directory, 'old.yaml');
    writeFileSync(file, stringify(old, { aliasDuplicateObjects: false }));
    api.kubectl('replace', '-f', file);
    const claim = {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'AddressClaim',
      metadata: { name: '243.0.0.9' },
      spec: { address: '243.0.0.9', owner: { kind: 'ServiceImport', namespace: 'shop', name: 'web' } },
    };
    const claimFile = join(directory, 'claim.json');
    writeFileSync(claimFile, JSON.stringify(claim));
    await until('it is stored in the old one', () => {
      try {
        api.kubectl('apply', '-f', claimFile);
        return true;
      } catch {
        return false;
      }
    });
    expect(await api.stored('/registry/portolan.dev/addressclaims/243.0.0.9')).toContain('portolan.dev/v1alpha0');
    const { code, err } = await typed('upgrade', api.kubeconfig);
    expect([code, err]).toEqual([0, '']);
    const shown = api.kubectl('get', 'crd', name, '-o', 'jsonpath={.status.storedVersions} {.spec.versions[*].name}');
    expect(shown).toBe('["v1alpha1"] v1alpha1');
    expect(await api.stored('/registry/portolan.dev/addressclaims/243.0.0.9')).toContain('portolan.dev/v1alpha1');
  });
});

describe('versions of Kubernetes', () => {
  const stopping: (() => unknown)[] = [];
  afterEach(async () => {
    for (const stop of stopping.splice(0).reverse()) await stop();
  });

  test('one that says 1.28 -> refused, and nothing is changed', async () => {
    const api = await KubernetesApiServer.start();
    stopping.push(() => api.stop());
    const older = await sayingVersion(api, { minor: '28', directory });
    stopping.push(older.stop);
    const { code, err } = await typed('install', older.kubeconfig);
    expect([code, err]).toEqual([
      5,
      expect.stringContaining('this cluster is Kubernetes 1.28; 1.29 is the oldest that works'),
    ]);
    expect(api.kubectl('get', 'namespaces', '-o', 'name')).not.toContain(system);
  });

  test('one that emulates 1.34 -> installed with every part', async () => {
    const api = await KubernetesApiServer.start({ args: ['--emulated-version=1.34'] });
    stopping.push(() => api.stop());
    const { minor, emulationMinor } = JSON.parse(api.kubectl('get', '--raw', '/version'));
    console.log(`API server 1.${minor}, emulates 1.${emulationMinor}`);
    const set = ['xds', 'ingress', 'envoy', 'peering'].map((part) => `--set ${part}.enabled=true`).join(' ');
    const mesh = '--set peering.trustDomain=acme.example --set peering.advertise=mesh.acme.example:8008';
    const { code, err } = await typed(`install ${set} ${mesh}`, api.kubeconfig);
    expect([code, err]).toEqual([0, '']);
  });
});

describe('a broker that is a member too', () => {
  test('install says so first; it joins itself, exports and imports', async () => {
    const parts = new RunningParts();
    const home = await startFlowHome('real', 'hub');
    try {
      await home.type('broker init --clusterset prod');
      expect(await home.type('install --set dns.clusterId=hub')).toMatch(
        /^note: this cluster is also the broker of clusterset prod: /,
      );
      const token = (await home.type('broker token hub --clusterset prod')).trim().split(/\s+/).at(-1);
      await home.type(`join ${token}`);
      parts.start(home, 'agent', ['agent']);
      addService(home, 'web', '10.1.0.7');
      await home.type('export shop/web --wait --timeout 120');
      await until('it imports its own', () => home.kubectl('get serviceimports -n shop -o name').includes('web'));
      expect(home.refusals()).toEqual([]);
    } finally {
      await parts.stop();
      await home.stop();
    }
  });
});
