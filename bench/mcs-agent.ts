// An agent as a process, for mcs/join.ts: `mcs-agent.ts HOME-KUBECONFIG BROKER-KUBECONFIG CLUSTERSET ID NAMESPACE`. Runs until it is
// killed, and says what it holds in memory when it is sent a message.

import { silentLog } from '../src/base/log.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { createAgent } from '../src/clusterset/agent/agent.ts';
import { createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';

const [homeFile, brokerFile, clusterset, clusterId, namespace] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
];
const world = createRealWorld();

async function clientOf(kubeconfig: string) {
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  return createClient(world.network.http(access), { world, userAgent: 'bench-agent' });
}

const agent = createAgent({
  world,
  log: silentLog,
  home: await clientOf(homeFile),
  broker: await clientOf(brokerFile),
  membership: { clusterset, clusterId, namespace },
});
agent.start();
process.on('message', () => {
  globalThis.gc?.();
  process.send?.(process.memoryUsage());
});
