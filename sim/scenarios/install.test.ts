// `portolan install` and `portolan upgrade` at a simulated Kubernetes that runs no Pods: what they write and how they end.

import { expect, test } from 'vitest';
import { version } from '../../src/base/version.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { addInstallCommand } from '../../src/cli/installation/install.ts';
import { clusterIdProperty, clusterPropertyType } from '../../src/clusterset/kinds/cluster-property.ts';
import { deploymentType } from '../../src/install/workload.ts';
import { startSimulatedKubernetes } from '../simulated-kubernetes.ts';

test('upgrade: -> keeps the values of the last time, and ends with the image and the report of each part', async () => {
  const { run } = await startSimulatedKubernetes(addInstallCommand);
  const first = await run('install --set image=registry.example/portolan --set proxy.enabled=false');
  expect(first.lines.join('\n')).toContain('created Deployment portolan-system/portolan-dns');
  expect(first.exitCode).toBe(0);
  const { exitCode, lines } = await run('upgrade');
  expect(exitCode).toBe(0);
  const end = lines.slice(lines.findIndex((line) => line.startsWith('installed; ')) + 1);
  const image = `registry.example/portolan:${version}`;
  expect(end.map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
    ['PART', 'REPORTS', 'IMAGE'],
    ['agent', '-', image],
    ['dns', '-', image],
  ]);
});

test('install: dns.clusterId is another than the cluster joined with -> refused, and nothing is written', async () => {
  const { run, client, settle } = await startSimulatedKubernetes(addInstallCommand);
  await run('install --definitions-only');
  await settle(
    client.create(clusterPropertyType, {
      ...{ apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata: { name: clusterIdProperty } },
      spec: { value: 'west' },
    } as never),
  );
  const { exitCode, lines } = await run('install --set dns.clusterId=east');
  expect([exitCode, ...lines]).toEqual([
    exitCodes.usage,
    'values: dns.clusterId: east, but this cluster joined as west; leave it out, or leave and join again',
  ]);
  expect((await settle(client.list(deploymentType))).items).toEqual([]);
});
