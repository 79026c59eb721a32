// One whole agent among the light ones: `portolan agent` as a process, with a home of its own that is a process too.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { brokerToken } from '../../src/cli/clusterset/broker-token.ts';
import { join } from '../../src/cli/clusterset/join.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { parseJoinToken } from '../../src/clusterset/membership/join-token.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import { type ApiProcess, startApi } from '../../test/support/api-process.ts';
import { type Broker, clusterset, host, pause, world } from './broker.ts';

const portolan = fileURLToPath(new URL('../../bin/portolan', import.meta.url));

export class WholeAgent {
  readonly client: Client;
  readonly home: ApiProcess;
  child: ChildProcess;

  constructor(client: Client, home: ApiProcess) {
    this.client = client;
    this.home = home;
    this.child = this.#start();
  }

  async restart(meanwhile: () => Promise<void>): Promise<void> {
    await this.#end('SIGTERM');
    await meanwhile();
    this.child = this.#start();
  }

  async stop(): Promise<void> {
    await this.#end('SIGKILL');
    await this.home.stop('SIGKILL');
  }

  #start(): ChildProcess {
    const at = ['--kubeconfig', this.home.kubeconfig];
    const args = ['agent', ...at, '--admin-listen', '127.0.0.1:0', '--log-level', 'error'];
    return spawn(portolan, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.kill(signal);
    await exited;
  }
}

export async function startWholeAgent(broker: Broker, directory: string): Promise<WholeAgent> {
  const home = await startApi({ data: directory });
  const access = await findHome({ host, clock: world.clock, kubeconfig: home.kubeconfig });
  const client = createClient(world.network.http(access), { world, userAgent: 'bench' });
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const request = { client: broker.client, access: broker.access, clusterset, id: 'whole', spec: {} };
  const token = await brokerToken({ ...request, lifetimeMs: 600_000, isRenewal: false });
  const deps = { world, host, print: () => {}, setExitCode: () => {} };
  const claims = { region: '', zone: '', podRanges: [], serviceRanges: [] };
  await join(deps, { home: client, token: parseJoinToken(token), claims, lifetimeMs: 24 * 3_600_000 });
  return new WholeAgent(client, home);
}

/** Counts without reading them: a hundred thousand imports are no small answer. */
export async function untilImported({ client }: Pick<WholeAgent, 'client'>, count: number): Promise<void> {
  for (;;) {
    const { items, metadata } = await client.list(serviceImportType, { namespace: 'shop', limit: 1 });
    if (items.length + (metadata.remainingItemCount ?? 0) >= count) return;
    await pause(200);
  }
}
