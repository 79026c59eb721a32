// docs/quickstart/kubernetes.md is typed as it stands there: east and west are real Kubernetes API servers, the broker is an
// embedded home. No kubelet runs Pods here, so the agents are started with the accounts that the installation made for them.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { stepsOf, Typist } from '../support/quickstart.ts';
import { type FlowHome, startFlowHome } from './homes.ts';
import { RunningParts } from './parts.ts';

const names = ['broker', 'east', 'west'] as const;
const steps = stepsOf('kubernetes.md');
const folder = mkdtempSync(join(tmpdir(), 'portolan-quickstart-'));
const parts = new RunningParts();
const homes = new Map<string, FlowHome>();
let typist: Typist;

beforeAll(async () => {
  const started = await Promise.all(names.map((name) => startFlowHome(name === 'broker' ? 'embedded' : 'real', name)));
  for (const home of started) homes.set(home.name, home);
  writeFileSync(join(folder, 'config'), JSON.stringify(merged([...homes.values()])));
  typist = new Typist({
    folder,
    machines: [{ name: 'admin', within: ['env', `KUBECONFIG=${join(folder, 'config')}`] }],
    translate: (command) => command,
  });
  const port = { port: 80, targetPort: 8080 };
  for (const name of ['east', 'west'])
    homes.get(name)!.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const metadata = { name: 'checkout', namespace: 'shop' };
  const slice = { ...metadata, labels: { 'kubernetes.io/service-name': 'checkout' } };
  homes.get('east')!.apply(
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [port] } },
    {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: slice, addressType: 'IPv4' },
      ...{ ports: [{ port: 8080 }], endpoints: [{ addresses: ['10.1.0.7'], conditions: { ready: true } }] },
    },
  );
});
afterAll(async () => {
  await parts.stop();
  await typist?.stop();
  await Promise.all([...homes.values()].map((home) => home.stop()));
  rmSync(folder, { recursive: true, force: true });
});

/** One kubeconfig with a context for each home. */
function merged(all: readonly FlowHome[]) {
  const configs = all.map((home) => ({ name: home.name, config: parse(readFileSync(home.kubeconfig, 'utf8')) }));
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: configs.map(({ name, config }) => ({ name, cluster: config.clusters[0].cluster })),
    users: configs.map(({ name, config }) => ({ name, user: config.users[0].user })),
    contexts: configs.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
  };
}

test('quick start: Kubernetes -> under ten commands, and the service of east is imported in west', async () => {
  expect(steps.length).toBeLessThan(10);
  for (const step of steps) {
    if (step.command.includes('portolan export'))
      for (const name of ['east', 'west']) parts.start(homes.get(name)!, 'agent', ['agent']);
    const { code, out, err } = await typist.type(step);
    // Without Pods there is no proxy: status says so, and ends with 7.
    const isFine = code === 0 || (step.command.includes('portolan status') && code === 7);
    expect({ command: step.command, isFine, err: isFine ? '' : out + err }).toMatchObject({ isFine: true, err: '' });
    if (step.command.includes('portolan status')) expect(out).toMatch(/shop\/checkout +ClusterSetIP +east/);
  }
  const imported = () => {
    try {
      return homes.get('west')!.kubectl('get serviceimport checkout -n shop -o jsonpath={.spec.type}');
    } catch (error) {
      return String(error);
    }
  };
  await expect.poll(imported, { timeout: 60_000, interval: 500 }).toBe('ClusterSetIP');
});
