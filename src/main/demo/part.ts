// The demo: a broker and three clusters in one process, joined, with sample services and resolvers, a second company that
// shares a service with west, and an external service. It keeps to its folder, to loopback and to free ports, and says what
// it did in `demo.json`.

import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { makeFolder } from '../../base/real/make-folder.ts';
import { sleep } from '../../base/world.ts';
import { serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { memberNamespace } from '../../clusterset/rules/broker-layout.ts';
import { recordName } from '../../clusterset/rules/names.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import {
  type DemoBroker,
  type DemoDeps,
  demoClusterSet,
  demoFederation,
  type RunningCluster,
  startBroker,
  startCluster,
  untilPosted,
} from './clusterset.ts';
import { type ControlServer, startControl } from './control.ts';
import { type DemoDashboard, startDemoDashboard } from './dashboard.ts';
import { type DemoEnvoys, startDemoEnvoys } from './envoys.ts';
import { lockFolder } from './lock.ts';
import { type DemoNeighbour, neighbourName, startNeighbour } from './neighbour.ts';
import { type DemoOutside, startOutside } from './outside.ts';
import { type DemoProxy, startDemoProxy } from './proxy.ts';
import { takeRange } from './range.ts';
import { type DemoCluster, demoClusters, demoNamespace, type Sample, samples } from './samples.ts';
import { type SampleBackend, startSamples } from './services.ts';

export interface Demo {
  readonly broker: DemoBroker;
  readonly clusters: readonly DemoMember[];
  /** West's: this machine stands for one of its nodes. */
  readonly proxy: DemoProxy;
  readonly neighbour: DemoNeighbour;
  readonly outside: DemoOutside;
  /** Undefined where no Envoy is on PATH. */
  readonly envoys: DemoEnvoys | undefined;
  readonly dashboard: DemoDashboard;
}

interface DemoMember extends RunningCluster {
  readonly backends: readonly SampleBackend[];
}

/** Contents of `demo.json`. */
export interface DemoFile {
  readonly broker: { readonly kubeconfig: string };
  readonly clusters: Readonly<Record<string, DemoFileCluster>>;
  readonly federation: { readonly name: string; readonly suffix: string; readonly dns: string; readonly admin: string };
  readonly proxy: { readonly cluster: string; readonly admin: string };
  readonly neighbour: { readonly name: string; readonly kubeconfig: string };
  /** URLs of the admin endpoints, such as that of `agent-east`. */
  readonly admins: Readonly<Record<string, string>>;
  readonly control: { readonly port: number; readonly secret: string };
  /** URL of the dashboard, and what to sign in with. */
  readonly dashboard: string;
  readonly token: string;
}

interface DemoFileCluster {
  readonly kubeconfig: string;
  readonly dns: string;
  /** Where the resolver explains its answers. */
  readonly admin: string;
  readonly region: string;
  readonly zone: string;
}

export async function startDemo(deps: DemoDeps, say: (line: string) => void): Promise<Demo> {
  makeFolder(deps.directory, 0o700);
  const lock = lockFolder(deps.directory);
  deps.parts.add('lock of the folder', async () => lock.release());
  // A demo starts from nothing: what an earlier one left would be joined already, on ports that are gone.
  for (const name of ['broker', neighbourName, ...demoClusters.map(({ id }) => id), 'demo.json']) {
    rmSync(`${deps.directory}/${name}`, { recursive: true, force: true });
  }
  const addresses = await takeRange(deps.world);
  deps.parts.add('range of clusterset IPs', () => addresses.release());
  const broker = await startBroker(deps, addresses);
  say(`broker     ${broker.home.server}  authority of the federation 127.0.0.1:${broker.authority.port}`);
  const clusters = await Promise.all(demoClusters.map((cluster) => startOne(deps, broker, cluster, say)));
  const control = await startControl({
    secret: deps.world.random.uuid(),
    handle: (verb, id) => act(clusters, verb, id),
  });
  deps.parts.add('control', () => control.stop());
  await untilImported(deps, clusters);
  const west = memberOf(clusters, 'west');
  const [proxy, neighbour, outside, dashboard] = await Promise.all([
    startDemoProxy(deps, west, addresses.clusterSet),
    startNeighbour(deps, west, addresses),
    startOutside(deps, west, addresses),
    startDemoDashboard(deps, { broker, clusters }, (verb, id) => act(clusters, verb, id)),
    broker.authority.whenSynced(),
    untilPosted(deps, broker, clusters.length),
  ]);
  say(`${neighbourName.padEnd(10)} ${neighbour.home.server}  another company, a peer of west`);
  const envoys = await startDemoEnvoys(deps, { west, neighbour, outside });
  const demo = { broker, clusters, proxy, neighbour, outside, envoys, dashboard };
  writeDemoFile(deps, { ...demo, control });
  return demo;
}

function memberOf(clusters: readonly DemoMember[], id: string): DemoMember {
  const member = clusters.find(({ cluster }) => cluster.id === id);
  if (member === undefined) throw new Error(`demo: no cluster ${id}`);
  return member;
}

async function startOne(
  deps: DemoDeps,
  broker: DemoBroker,
  cluster: DemoCluster,
  say: (line: string) => void,
): Promise<DemoMember> {
  const running = await startCluster(deps, broker, cluster);
  const services = await startSamples(cluster, running.client, (sample) => untilDecided(deps, broker, sample));
  deps.parts.add(`${cluster.id}: sample services`, () => services.stop());
  say(`${cluster.id.padEnd(10)} ${running.home.server}  dns 127.0.0.1:${running.resolver.port}`);
  return { ...running, backends: services.backends };
}

/** Its record at the broker, which counts the age of an export from then on. */
async function untilDecided(deps: DemoDeps, broker: DemoBroker, { name, decider }: Sample): Promise<void> {
  if (decider === undefined) return;
  const record = {
    namespace: memberNamespace(demoClusterSet, decider),
    name: recordName({ namespace: demoNamespace, name }),
  };
  for (let tries = 0; (await getOrUndefined(broker.client, serviceShardType, record)) === undefined; tries += 1) {
    if (tries > 300) throw new Error(`demo: ${decider} did not export ${name} in 30 s`);
    await sleep(deps.world.timers, 100);
  }
}

async function act(clusters: readonly RunningCluster[], verb: string, id: string): Promise<string> {
  const running = clusters.find(({ cluster }) => cluster.id === id);
  if (running === undefined)
    throw new Error(`no cluster ${id} here, there are ${demoClusters.map((each) => each.id).join(', ')}`);
  if (verb === 'break') {
    running.brokerLink.cut();
    return `${id} is cut off from the broker; the others let go of it when its lease ends, in about 6 s`;
  }
  if (verb === 'heal') {
    running.brokerLink.mend();
    return `${id} reaches the broker again`;
  }
  throw new Error(`no such order: ${verb}`);
}

/** Until every cluster holds every import it should, and answers for it. */
async function untilImported(deps: DemoDeps, clusters: readonly RunningCluster[]): Promise<void> {
  for (const { cluster, client, resolver } of clusters) {
    await resolver.whenSynced();
    const wanted = samples.filter(
      ({ clusters: exporters, exportTo }) =>
        exportTo === undefined || exportTo === cluster.id || exporters.includes(cluster.id),
    );
    for (
      let tries = 0;
      !(await hasAll(
        client,
        wanted.map(({ name }) => name),
      ));
      tries += 1
    ) {
      if (tries > 300)
        throw new Error(`demo: ${cluster.id} did not import ${wanted.map(({ name }) => name).join(', ')} in 30 s`);
      await sleep(deps.world.timers, 100);
    }
  }
}

async function hasAll(client: Client, names: readonly string[]): Promise<boolean> {
  const { items } = await client.list(serviceImportType, { namespace: demoNamespace });
  const present = new Set(items.map(({ metadata }) => metadata.name));
  return names.every((name) => present.has(name));
}

function writeDemoFile({ directory, admins }: DemoDeps, demo: Demo & { readonly control: ControlServer }): void {
  const clusters = demo.clusters.map(({ cluster, home, resolver, admin }) => {
    const { region, zone } = cluster;
    return [cluster.id, { kubeconfig: home.kubeconfig, dns: `127.0.0.1:${resolver.port}`, admin, region, zone }];
  });
  const { port, secret } = demo.control;
  const file: DemoFile = {
    broker: { kubeconfig: demo.broker.home.kubeconfig },
    clusters: Object.fromEntries(clusters),
    federation: { ...demoFederation, dns: `127.0.0.1:${demo.broker.authority.port}`, admin: demo.broker.admin },
    proxy: { cluster: demo.proxy.cluster, admin: demo.proxy.admin },
    neighbour: { name: neighbourName, kubeconfig: demo.neighbour.home.kubeconfig },
    admins: Object.fromEntries([...admins].sort()),
    control: { port, secret },
    dashboard: demo.dashboard.url,
    token: demo.dashboard.token,
  };
  writeFileSync(`${directory}/demo.json`, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600 });
  chmodSync(`${directory}/demo.json`, 0o600);
}
