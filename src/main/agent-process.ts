// The process of `portolan agent`: from flags to running controllers, their admin endpoint, and its end.

import { hostname } from 'node:os';
import { createMetrics } from '../base/metrics.ts';
import { Parts } from '../base/parts.ts';
import { startAdminEndpoint } from '../base/real/admin-endpoint.ts';
import { createRealHost } from '../base/real/host.ts';
import { createRealWorld } from '../base/real/world.ts';
import type { AgentFlags } from '../cli/roles/agent.ts';
import { parseListen } from '../cli/roles/options.ts';
import { loadPlugins } from '../external/plugins/edge/load.ts';
import { createClient } from '../kube/client/client.ts';
import { findHome } from '../kube/client/kubeconfig.ts';
import { keepPartLease } from '../kube/controller/part-lease.ts';
import { notReady, startAgentRole } from './agent.ts';
import { processLog, untilStopped } from './process.ts';

export async function runAgent(flags: AgentFlags): Promise<void> {
  const listen = parseListen(flags.adminListen, '--admin-listen');
  const world = createRealWorld();
  const host = createRealHost();
  const log = processLog(world, flags.logLevel);
  const metrics = createMetrics();
  const find = (kubeconfig: string | undefined, context?: string) =>
    findHome({
      host,
      clock: world.clock,
      kubeconfig,
      context,
    });
  const access = await find(flags.kubeconfig, flags.context);
  const brokerAccess = flags.brokerKubeconfig === undefined ? undefined : await find(flags.brokerKubeconfig);
  const home = createClient(world.network.http(access), { world, userAgent: 'portolan-agent' });
  const parts = new Parts(log);
  parts.add('home client', () => home.close());
  const role = startAgentRole({
    world,
    log,
    metrics,
    home,
    brokerAccess,
    plugins: await loadPlugins(flags.plugin),
  });
  parts.add('agent', () => role.stop());
  const node = host.environment['NODE_NAME'] ?? hostname();
  const lease = keepPartLease({ client: home, world, log, part: 'agent', id: hostname(), node });
  parts.add('lease', () => lease.stop());
  const status = () => role.state();
  const admin = await startAdminEndpoint({
    listen,
    metrics,
    notReady: () => lease.problem() || notReady(status()),
    status,
    registrations: [lease],
  }).catch(async (error: unknown) => {
    await parts.stop();
    throw error;
  });
  parts.add('admin endpoint', () => admin.close());
  const stopped = untilStopped(log, () => parts.stop());
  process.stdout.write(`ready ${access.server}\nadmin ${admin.url}\n`);
  await stopped;
}
