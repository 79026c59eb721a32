// `portolan coredns` at a simulated Kubernetes: shows the change, writes with consent, and undoes it.

import { expect, test } from 'vitest';
import { addCorednsCommand } from '../../src/cli/installation/coredns.ts';
import { getOrUndefined } from '../../src/kube/client/absent.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { startSimulatedKubernetes } from '../simulated-kubernetes.ts';

const corefile = '.:53 {\n    errors\n    reload\n}\n';
const corednsRef = { namespace: 'kube-system', name: 'coredns' };

async function start({ hasResolver = true, text = corefile }: { hasResolver?: boolean; text?: string } = {}) {
  const at = await startSimulatedKubernetes(addCorednsCommand);
  const make = async (client: Client) => {
    for (const name of ['kube-system', 'portolan-system'])
      await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }).catch(() => {});
    const shared = { apiVersion: 'v1', kind: 'ConfigMap' };
    await client.create<ConfigMap>(configMapType, { ...shared, metadata: corednsRef, data: { Corefile: text } });
    if (!hasResolver) return;
    const metadata = { namespace: 'portolan-system', name: 'portolan-dns' };
    const spec = { clusterIP: '10.96.0.20', ports: [{ name: 'dns', port: 53, protocol: 'UDP' as const }] };
    await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec } as never);
  };
  await at.settle(make(at.client));
  const read = async (name = 'coredns') =>
    (await at.settle(getOrUndefined<ConfigMap>(at.client, configMapType, { ...corednsRef, name })))?.data;
  return { ...at, read };
}

test('coredns: shown, written with --yes, again, removed -> only then changed, and in the end as it was', async () => {
  const { run, read } = await start();
  const shown = await run('coredns');
  expect(shown.lines).toContain('+ clusterset.local:53 peers.local:53 federation:53 {');
  expect(shown.lines.at(-1)).toBe('nothing was written; repeat with --yes');
  expect(await read()).toEqual({ Corefile: corefile });
  expect((await run('coredns --yes')).lines.at(-1)).toBe('written; CoreDNS reads it within two minutes');
  expect((await read())?.['Corefile']).toContain('forward . 10.96.0.20 {');
  expect((await run('coredns --yes')).lines).toEqual(['CoreDNS asks portolan-dns already']);
  expect((await run('coredns --remove')).lines).toContain('- clusterset.local:53 peers.local:53 federation:53 {');
  await run('coredns --remove --yes');
  expect(await read()).toEqual({ Corefile: corefile });
  expect((await run('coredns --remove --yes')).lines).toEqual(['nothing of ours is there']);
});

test('coredns: AKS -> coredns-custom is made, and deleted again; the Corefile stays', async () => {
  const text = `${corefile}import custom/*.server\n`;
  const { run, read } = await start({ text });
  await run('coredns --yes');
  expect([Object.keys((await read('coredns-custom')) ?? {}), await read()]).toEqual([
    ['portolan.server'],
    { Corefile: text },
  ]);
  await run('coredns --remove --yes');
  expect(await read('coredns-custom')).toBeUndefined();
});

test('coredns: EKS -> configuration values are printed and nothing is written', async () => {
  const { run, read } = await start();
  const { lines } = await run('coredns --for eks --yes');
  expect(JSON.parse(lines.join('\n')).corefile).toContain('forward . 10.96.0.20 {');
  expect(await read()).toEqual({ Corefile: corefile });
});

test.each([
  [{ hasResolver: false }, 4, 'no Service portolan-system/portolan-dns'],
  [{ text: `${corefile}clusterset.local {\n}\n` }, 5, 'which is not ours'],
  [{ text: '.:53\nerrors\n' }, 5, 'no server block with braces'],
])('coredns: %j -> ends with %i and why, and nothing is written', async (options, exitCode, why) => {
  const { run, read } = await start(options);
  const before = await read();
  const ended = await run('coredns --yes');
  expect([ended.exitCode, ended.lines.join()]).toEqual([exitCode, expect.stringContaining(why)]);
  expect(await read()).toEqual(before);
});
