// The process of `portolan agent`: from flags to running controllers, their admin endpoint, and its end.

import { createRealHost } from '../../base/real/host.ts';
import type { AgentFlags } from '../../cli/roles/agent.ts';
import { parseListen } from '../../cli/roles/options.ts';
import { loadPlugins } from '../../external/plugins/edge/load.ts';
import { createClient } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { openRole, untilStopped, withParts } from '../process.ts';
import { announce } from './announce.ts';
import { startAgentPart } from './part.ts';

export async function runAgent(flags: AgentFlags): Promise<void> {
  const listen = parseListen(flags.adminListen, '--admin-listen');
  const host = createRealHost();
  const { world, log } = await openRole('agent', flags.logLevel);
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
    const routesServices = flags.clusterIpsRouted === true ? true : undefined;
    const agent = await startAgentPart({ world, host, log, home, brokerAccess, plugins, listen, routesServices });
    parts.add('agent', () => agent.stop());
    const waiting = new AbortController();
    parts.add('wait for the home', () => waiting.abort());
    const stopped = untilStopped(log, () => parts.stop());
    const print = (text: string) => void process.stdout.write(`${text}\n`);
    await announce({ world, home, server: access.server, adminUrl: agent.url, print, signal: waiting.signal });
    await stopped;
  });
}
