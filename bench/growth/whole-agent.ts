// One whole agent among the light ones: `portolan agent` as a process, with a home of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { silentLog } from '../../src/base/log.ts';
import { brokerToken } from '../../src/cli/clusterset/broker-token.ts';
import { join } from '../../src/cli/clusterset/join.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { parseJoinToken } from '../../src/clusterset/membership/join-token.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import { type Home, startHome } from '../../src/main/home/part.ts';
import { type Broker, clusterset, host, pause, world } from './broker.ts';

const portolan = fileURLToPath(new URL('../../bin/portolan', import.meta.url));

export interface WholeAgent {
  readonly child: ChildProcess;
  readonly client: Client;
  readonly home: Home;
  stop(): Promise<void>;
}

export async function startWholeAgent(broker: Broker, directory: string): Promise<WholeAgent> {
  const home = await startHome({ world, log: silentLog, directory, listen: { host: '127.0.0.1', port: 0 } });
  const client = createClient(home.transport, { world, userAgent: 'bench' });
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const request = { client: broker.client, access: broker.access, clusterset, id: 'whole', spec: {} };
  const token = await brokerToken({ ...request, lifetimeMs: 600_000, isRenewal: false });
  const deps = { world, host, print: () => {}, setExitCode: () => {} };
  const claims = { region: '', zone: '', podRanges: [], serviceRanges: [] };
  await join(deps, { home: client, token: parseJoinToken(token), claims, lifetimeMs: 24 * 3_600_000 });
  const args = ['agent', '--kubeconfig', home.kubeconfig, '--admin-listen', '127.0.0.1:0', '--log-level', 'error'];
  const child = spawn(portolan, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const stop = async () => {
    child.kill('SIGKILL');
    await home.stop();
  };
  return { child, client, home, stop };
}

export async function untilImported({ client }: WholeAgent, count: number): Promise<void> {
  for (;;) {
    const { items } = await client.list(serviceImportType, { namespace: 'shop' });
    if (items.length >= count) return;
    await pause(500);
  }
}
