// The process of `portolan xds`: from flags to a running discovery server, its admin endpoint, and its end.

import { createRealHost } from '../../base/real/host.ts';
import { createSystemLookUp } from '../../base/real/look-up.ts';
import { probeMutualTls } from '../../base/real/prober-mutual-tls.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { parseAccount, parseListen, parseMode } from '../../cli/roles/options.ts';
import type { XdsFlags } from '../../cli/roles/xds.ts';
import { requireClusterId } from '../../clusterset/explain/cluster-id.ts';
import { loadPlugins } from '../../external/plugins/edge/load.ts';
import { createClient } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { ownAddresses, serverHosts } from '../identity/own-names.ts';
import { openRole, untilStopped, whenHomeAnswers, withParts } from '../process.ts';
import { startXdsAdmin } from './admin.ts';
import { startXdsRole } from './part.ts';

export async function runXds(flags: XdsFlags): Promise<void> {
  const { world, log } = await openRole('xds', flags.logLevel);
  const metrics = createPartMetrics('xds');
  for (const text of flags.sidecarAccount) parseAccount(text, '--sidecar-account');
  const sidecarAccounts = new Set(flags.sidecarAccount);
  const { kubeconfig, context } = flags;
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig, context });
  const home = createClient(world.network.http(access), { world, userAgent: 'portolan-xds' });
  await withParts(log, async (parts) => {
    parts.add('home client', () => home.close());
    const cluster = flags.clusterId ?? (await whenHomeAnswers({ world, log }, () => requireClusterId(home)));
    const mode = parseMode(flags.socketMode, '--socket-mode');
    const role = await startXdsRole({
      ...{ world, log, metrics, home, cluster },
      namespace: flags.namespace,
      secretsNamespace: flags.secretsNamespace,
      peeringNamespace: flags.peeringNamespace,
      zone: flags.zone,
      region: flags.region,
      ...(flags.listen === 'none' ? {} : { listen: parseListen(flags.listen) }),
      ...(flags.socket === undefined ? {} : { socket: { path: flags.socket, mode } }),
      hosts: flags.host,
      sidecarAccounts,
      lookUp: createSystemLookUp(),
      probeGateway: probeMutualTls,
      own: { ranges: flags.ownRange, hosts: [...serverHosts(access), ...ownAddresses()] },
      plugins: await loadPlugins(flags.plugin),
      ports: {
        virtual: Number(flags.virtualPort),
        ingress: Number(flags.ingressPort),
        gateway: Number(flags.gatewayPort),
      },
    });
    parts.add('xds', () => role.stop());
    const listen = parseListen(flags.adminListen, '--admin-listen');
    const admin = await startXdsAdmin({ listen, metrics, role, cluster });
    parts.add('admin endpoint', () => admin.close());
    const stopped = untilStopped(log, () => parts.stop());
    process.stdout.write(`ready ${role.port}\nadmin ${admin.url}\n`);
    await stopped;
  });
}
