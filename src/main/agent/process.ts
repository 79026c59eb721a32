// The process of `portolan agent`: from flags to running controllers, their admin endpoint, and its end.

import { createRealHost } from '../../base/real/host.ts';
import { sleep, type World } from '../../base/world.ts';
import { describeError } from '../../cli/exit-codes.ts';
import type { AgentFlags } from '../../cli/roles/agent.ts';
import { parseListen } from '../../cli/roles/options.ts';
import { loadPlugins } from '../../external/plugins/edge/load.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import { openRole, untilStopped, withParts } from '../process.ts';
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
    const why = await whyAway(home);
    if (why === undefined) process.stdout.write(`ready ${access.server}\nadmin ${agent.url}\n`);
    else {
      process.stdout.write(`waiting for ${access.server}: ${why}\nadmin ${agent.url}\n`);
      if (await comesBack(world, home, waiting.signal)) process.stdout.write(`ready ${access.server}\n`);
    }
    await stopped;
  });
}

const askAgainMs = 1_000;

/** Undefined if the home answers, whatever it says. */
async function whyAway(home: Client): Promise<string | undefined> {
  try {
    await home.getPath('/version');
    return undefined;
  } catch (error) {
    return error instanceof ApiError ? undefined : describeError(error);
  }
}

/** False if the process is stopped before the home has answered. */
async function comesBack({ timers }: World, home: Client, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    await sleep(timers, askAgainMs, signal).catch(() => {});
    if (!signal.aborted && (await whyAway(home)) === undefined) return true;
  }
  return false;
}
