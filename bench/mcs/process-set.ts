// A clusterset of processes, as it runs: `portolan api` for the broker and for every home, `portolan agent` for every
// cluster with its own account in its home and its own at the broker, all over TLS. Only the watching side is in here.

import { rmSync } from 'node:fs';
import { createRealHost } from '../../src/base/real/host.ts';
import { brokerInit } from '../../src/cli/clusterset/broker-init.ts';
import { brokerToken } from '../../src/cli/clusterset/broker-token.ts';
import { join } from '../../src/cli/clusterset/join.ts';
import { parseJoinToken } from '../../src/clusterset/membership/join-token.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { type ApiProcess, startApi } from '../../test/support/api-process.ts';
import { makeNamespace, TestClusterSet } from '../../test/support/clusterset.ts';
import { benchDirectory, set, world } from './clusterset.ts';

export interface ProcessSet {
  readonly broker: { readonly client: Client };
  readonly clusters: readonly { readonly id: string; readonly client: Client }[];
  stop(): Promise<void>;
}

const host = createRealHost();

/** Starts a broker in this folder; its kubeconfig. */
type StartBroker = (directory: string) => Promise<string>;

export async function startProcesses(count: number, startBroker?: StartBroker): Promise<ProcessSet> {
  const processes: ApiProcess[] = [];
  const directory = benchDirectory();
  const tools = new TestClusterSet();
  const startHome = async (data: string) => {
    const process = await startApi({ data });
    processes.push(process);
    return process.kubeconfig;
  };
  const reach = async (name: string, start: StartBroker) => {
    const kubeconfig = await start(`${directory}/${name}`);
    const access = await findHome({ host, clock: world.clock, kubeconfig });
    return { name, access, kubeconfig, server: access.server, client: tools.clientAt(access) };
  };
  const broker = await reach('broker', startBroker ?? startHome);
  await brokerInit({ client: broker.client, deps: { host, world }, clusterset: set, spec: {} });
  const clusters = [];
  for (let index = 0; index < count; index += 1) {
    const id = `c${index}`;
    const home = await reach(id, startHome);
    await makeNamespace(home.client, 'shop');
    const request = { client: broker.client, access: broker.access, clusterset: set, id, spec: {} };
    const token = parseJoinToken(await brokerToken({ ...request, lifetimeMs: 600_000, isRenewal: false }));
    const deps = { world, host, print: () => {}, setExitCode: () => {} };
    const claims = { region: '', zone: '', podRanges: [], serviceRanges: [] };
    await join(deps, { home: home.client, token, claims, lifetimeMs: 24 * 3_600_000 });
    const stop = async () => {};
    await tools.startAgent(await tools.agentKubeconfig({ ...home, stop }), ['--admin-listen', '127.0.0.1:0']);
    clusters.push({ id, client: home.client });
  }
  const stop = async () => {
    await tools.stop();
    await Promise.all(processes.map((process) => process.stop('SIGKILL')));
    rmSync(directory, { recursive: true, force: true });
  };
  return { broker, clusters, stop };
}
