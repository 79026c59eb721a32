// The process of `portolan agent`: from flags to running controllers, their admin endpoint, and its end.

import { createRealHost } from '../base/real/host.ts';
import { createRealWorld } from '../base/real/world.ts';
import type { AgentFlags } from '../cli/roles/agent.ts';
import { parseListen } from '../cli/roles/options.ts';
import { loadPlugins } from '../external/plugins/edge/load.ts';
import { createClient } from '../kube/client/client.ts';
import { findHome } from '../kube/client/kubeconfig.ts';
import { startAgentPart } from './agent-part.ts';
import { processLog, untilStopped, withParts } from './process.ts';

export async function runAgent(flags: AgentFlags): Promise<void> {
  const listen = parseListen(flags.adminListen, '--admin-listen');
  const world = createRealWorld();
  const host = createRealHost();
  const log = processLog(world, flags.logLevel);
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
  await withParts(log, async (parts) => {
    parts.add('home client', () => home.close());
    const plugins = await loadPlugins(flags.plugin);
    const agent = await startAgentPart({ world, host, log, home, brokerAccess, plugins, listen });
    parts.add('agent', () => agent.stop());
    const stopped = untilStopped(log, () => parts.stop());
    process.stdout.write(`ready ${access.server}\nadmin ${agent.url}\n`);
    await stopped;
  });
}
