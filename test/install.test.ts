// `portolan install`, `upgrade` and `uninstall` on a home that runs no Pods: the record of an installation, and refusals. The
// steps follow each other.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { clusterIdProperty, clusterPropertyType } from '../src/clusterset/kinds/cluster-property.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { type ConfigMap, configMapType } from '../src/kube/objects/config-map.ts';
import type { AnyObject } from '../src/kube/objects/object.ts';
import { serviceAccountType } from '../src/kube/objects/rbac.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { asArgs } from './support/kubectl.ts';
import { runPortolan } from './support/portolan.ts';

const system = 'portolan-system';
const usual = ['portolan-admin-caller', 'portolan-agent', 'portolan-dns', 'portolan-flow-reader', 'portolan-proxy'];
const directory = mkdtempSync(join(tmpdir(), 'portolan-install-'));
let api: ApiProcess;
let client: Client;

beforeAll(async () => {
  api = await startApi({ data: join(directory, 'home') });
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: api.kubeconfig });
  client = createClient(world.network.http(access), { world, userAgent: 'test' });
});
afterAll(async () => {
  client?.close();
  await api?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const typed = (line: string) => runPortolan([...asArgs(line), '--kubeconfig', api.kubeconfig]);
const type = async (line: string) => {
  const { code, out, err } = await typed(line);
  expect([line, code, err]).toEqual([line, 0, '']);
  return out;
};
const accounts = async () => {
  const { items } = await client.list(serviceAccountType, { namespace: system });
  const names = items.map(({ metadata }) => metadata.name).sort();
  return names.filter((name) => name !== 'default');
};
const givenValues = async () =>
  (await client.get<ConfigMap>(configMapType, { namespace: system, name: 'portolan-installation' })).data?.['values'];
const change = (name: string, metadata: object) =>
  client.patch(serviceAccountType, { namespace: system, name }, { kind: 'merge', body: { metadata } });

test('upgrade without values -> as before; --set -> that one changed; --values -> those alone', async () => {
  await type('install --rights-only --set dns.clusterId=west --set logLevel=warn');
  const first = 'dns:\n  clusterId: west\nlogLevel: warn\nrightsOnly: true\n';
  expect(await givenValues()).toBe(first);
  expect(await type('upgrade')).toMatch(/^installed; /);
  expect(await givenValues()).toBe(first);
  await type('upgrade --set logLevel=debug');
  expect(await givenValues()).toBe(first.replace('warn', 'debug'));
  const file = join(directory, 'values.yaml');
  const second = 'dns:\n  clusterId: west\nagent:\n  writeServices: true\nxds:\n  enabled: true\nrightsOnly: true\n';
  writeFileSync(file, second);
  await type(`upgrade --values ${file}`);
  expect(await givenValues()).toBe(second);
  expect(await accounts()).toEqual([...usual, 'portolan-xds']);
});

test('a part and a right are switched off -> their objects go, and nothing else', async () => {
  const out = await type('upgrade --set xds.enabled=false --set agent.writeServices=false');
  const removed = out.split('\n').filter((line) => line.startsWith('removed '));
  expect(removed).toContain('removed ClusterRole portolan:xds');
  expect(removed.filter((line) => !line.includes('xds'))).toEqual([
    'removed ClusterRole portolan:agent-services',
    'removed ClusterRoleBinding portolan:agent-services',
  ]);
  expect(await accounts()).toEqual(usual);
});

test('an object that somebody else took over -> stays', async () => {
  await type('upgrade --set xds.enabled=true');
  await change('portolan-xds', { labels: { 'app.kubernetes.io/managed-by': 'us' } });
  await type('upgrade --set xds.enabled=false');
  expect(await accounts()).toEqual([...usual, 'portolan-xds']);
});

test('the cluster joined under another id than it was installed with -> refused; without one -> the id it joined with', async () => {
  await client.create(clusterPropertyType, {
    ...{ apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata: { name: clusterIdProperty } },
    spec: { value: 'east' },
  } as AnyObject);
  const { code, err } = await typed('upgrade');
  expect([code, err]).toEqual([2, expect.stringContaining('dns.clusterId: west, but this cluster joined as east')]);
  const file = join(directory, 'none.yaml');
  writeFileSync(file, 'rightsOnly: true\n');
  expect(await type(`upgrade --values ${file}`)).toContain('installed; this cluster is east');
  expect(await givenValues()).toBe('rightsOnly: true\n');
});

test('Helm installed the parts -> upgrade and uninstall name its commands, and nothing is changed', async () => {
  const annotations = { 'meta.helm.sh/release-name': 'ours', 'meta.helm.sh/release-namespace': system };
  await change('portolan-admin-caller', { labels: { 'app.kubernetes.io/managed-by': 'Helm' }, annotations });
  for (const verb of ['upgrade', 'uninstall']) {
    const { code, err } = await typed(verb);
    expect([code, err]).toEqual([5, expect.stringContaining(`run helm ${verb} ours -n portolan-system`)]);
  }
  expect(await accounts()).toEqual([...usual, 'portolan-xds']);
  expect(await type('upgrade --definitions-only')).toBe('all definitions are up to date\n');
  await change('portolan-admin-caller', { labels: { 'app.kubernetes.io/managed-by': 'portolan' } });
});

test('uninstall -> nothing of ours is left, the record included', async () => {
  await type('uninstall --wait');
  expect(await accounts()).toEqual(['portolan-xds']);
  await expect(givenValues()).rejects.toThrow('not found');
});

test('install --print -> definitions and objects, without a home', async () => {
  const { code, out } = await runPortolan(['install', '--print', '--set', 'dns.clusterId=north']);
  expect(code).toBe(0);
  for (const text of ['name: serviceexports.multicluster.x-k8s.io', 'kind: DaemonSet', '- north'])
    expect(out).toContain(text);
});
