// What is done on two real clusters, in order, and what must be seen. An act returns a line about it or throws.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { findHelm } from '../../scripts/helm.mjs';
import { until } from '../support/dns-process.ts';
import { run } from '../support/portolan.ts';
import { stepsOf, Typist } from '../support/quickstart.ts';
import { backend, client, countingClient, nameService } from './pods.ts';
import { pathOf } from './programs.ts';
import type { NodeStage } from './stage.ts';

export interface Act {
  readonly name: string;
  run(stage: NodeStage): Promise<string>;
}

/** Under this load everything is rolled over. */
const requests = { short: 300, whole: 2_000 };

export const acts: readonly Act[] = [
  { name: 'two clusters with a node each, and a broker without', run: startClusters },
  { name: 'the quick start, in its order', run: typeQuickStart },
  { name: 'parts in Pods', run: seeParts },
  { name: 'a Pod of west reaches a Pod of east by name', run: reachByName },
  { name: 'kubectl logs of a part, portolan dig and doctor through the API server', run: askParts },
  { name: 'rollouts of the service, the proxy, the resolver and the agent under load', run: rollOver },
];

async function startClusters(stage: NodeStage): Promise<string> {
  await stage.start();
  for (const cluster of stage.nodes) {
    cluster.apply(...nameService(cluster.nameServer));
    cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  }
  stage.east.apply(...backend('checkout', 'shop'));
  stage.west.apply(client('shop'));
  for (const cluster of stage.nodes) await podsRun(cluster, 'shop');
  return stage.east.kubectl(['get', 'nodes', '-o', 'jsonpath={.items[*].status.nodeInfo.kubeletVersion}']);
}

/** Word for word, but that the first cluster waits for its Pods and the second is installed by Helm where there is one. */
async function typeQuickStart(stage: NodeStage): Promise<string> {
  const helm = findHelm();
  const typist = new Typist({
    folder: join(stage.folder, 'typed'),
    machines: [{ name: 'admin', within: ['env', `KUBECONFIG=${stage.kubeconfig}`] }],
    translate: (command) => {
      if (command.startsWith('portolan broker init')) return `${command} ${stage.initFlags}`;
      if (!command.startsWith('portolan install')) return command;
      const sets = stage.sets.map((one) => ` --set ${one}`).join('');
      if (!command.endsWith('west') || helm.path === undefined) return `${command}${sets} --wait`;
      const chart = `${process.cwd()}/deploy/chart -n portolan-system --create-namespace --kube-context west`;
      return `${helm.path} install portolan ${chart} --set image=registry.example/portolan${sets} --wait`;
    },
  });
  for (const step of stepsOf('kubernetes.md')) {
    const startMs = performance.now();
    let { code, out, err } = await typist.type(step);
    // Right after an export the import may be a moment behind, which status says.
    for (let tries = 0; step.command.startsWith('portolan status') && code === 7 && tries < 10; tries += 1)
      ({ code, out, err } = await typist.type(step));
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    stage.say(`  ${seconds} s  ${step.command}`);
    if (code !== 0) throw new Error(`${step.command} ended with ${code}: ${out}${err}`);
  }
  return helm.path === undefined ? `west by portolan install: ${helm.why}` : 'west by Helm';
}

async function seeParts(stage: NodeStage): Promise<string> {
  for (const cluster of stage.nodes) await podsRun(cluster, 'portolan-system');
  const restarts = stage.nodes.map((cluster) =>
    cluster.kubectl([
      ...['get', 'pods', '-n', 'portolan-system'],
      ...['-o', 'jsonpath={.items[*].status.containerStatuses[*].restartCount}'],
    ]),
  );
  if (!/^[0 ]+$/.test(restarts.join(' '))) throw new Error(`Pods were restarted: ${restarts.join(' ')}`);
  return `${restarts.join(' ').split(' ').length} Pods ready, none restarted`;
}

async function reachByName(stage: NodeStage): Promise<string> {
  let last = '';
  await until('west answers', async () => {
    last = await countRequests(stage, 1);
    return last.includes('"failed":0');
  });
  return last;
}

async function askParts(stage: NodeStage): Promise<string> {
  const env = { ...process.env, KUBECONFIG: stage.kubeconfig };
  for (const words of ['dig checkout.shop.svc.clusterset.local', 'status', 'doctor']) {
    const args = [...words.split(' '), '--context', 'west'];
    const { code, out, err } = await run('bin/portolan', args, { env });
    if (code !== 0) throw new Error(`portolan ${words} ended with ${code}: ${out}${err}`);
  }
  const log = stage.west.kubectl(['logs', '-n', 'portolan-system', 'daemonset/portolan-proxy']);
  const foreign = log.split('\n').filter((line) => line.includes('another process changed the rules'));
  if (foreign.length > 0) throw new Error(`the proxy takes its own changes for those of others: ${foreign[0]}`);
  return `log of the proxy: ${log.split('\n').length} lines`;
}

async function rollOver(stage: NodeStage): Promise<string> {
  const counted = countRequests(stage, stage.isShort ? requests.short : requests.whole);
  let isDone = false;
  void counted.finally(() => (isDone = true)).catch(() => {});
  const rolled = [];
  const turns = [
    [stage.east, 'shop', 'deployment/checkout'],
    [stage.west, 'portolan-system', 'daemonset/portolan-proxy'],
    [stage.west, 'portolan-system', 'deployment/portolan-dns'],
    [stage.west, 'portolan-system', 'deployment/portolan-agent'],
    [stage.east, 'portolan-system', 'deployment/portolan-agent'],
  ] as const;
  for (const [cluster, namespace, workload] of turns) {
    if (isDone && stage.isShort) break;
    cluster.kubectl(['rollout', 'restart', workload, '-n', namespace]);
    cluster.kubectl(['rollout', 'status', workload, '-n', namespace, '--timeout=120s']);
    rolled.push(`${workload} of ${cluster.machine.name}`);
  }
  const text = await counted;
  if (!text.includes('"failed":0')) throw new Error(`requests failed during the rollouts: ${text}`);
  return `${text} while ${rolled.join(', ')} were rolled over`;
}

async function podsRun(cluster: NodeStage['east'], namespace: string): Promise<void> {
  const wait = ['wait', '--for=condition=Ready', 'pods', '--all', '-n', namespace, '--timeout=2s'];
  await until(`Pods of ${namespace} in ${cluster.machine.name} are ready`, () => {
    try {
      cluster.kubectl(wait);
      return true;
    } catch {
      return false;
    }
  });
}

/** Requests from a Pod of west, each on a connection of its own; resolves to the count as JSON. */
function countRequests(stage: NodeStage, total: number): Promise<string> {
  const args = ['--kubeconfig', stage.west.kubeconfig, 'exec', '-n', 'shop', 'client', '--', '/usr/bin/node', '-e'];
  const child = spawn(pathOf('kubectl'), [...args, countingClient(total)], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk));
  return new Promise((resolve) => child.once('close', () => resolve(text.trim())));
}
