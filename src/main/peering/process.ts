// The process of `portolan peering`: from flags to a running server and client, their admin endpoint, and its end.

import { formatHostPort, parseHostPort } from '../../base/net/host-port.ts';
import { stayCompact } from '../../base/real/collect-garbage.ts';
import { createRealHost } from '../../base/real/host.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { usageError } from '../../cli/exit-codes.ts';
import { parseListen } from '../../cli/roles/options.ts';
import type { PeeringFlags } from '../../cli/roles/peering.ts';
import { createClient } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import type { PeerVersion } from '../../peering/kinds/peer.ts';
import { ownAddresses, ownZones, serverHosts } from '../identity/own-names.ts';
import { openRole, untilStopped, withParts } from '../process.ts';
import { startPeeringAdmin } from './admin.ts';
import { startPeeringRole } from './part.ts';

export async function runPeering(flags: PeeringFlags): Promise<void> {
  const listen = parseListen(flags.listen);
  const { world, log } = await openRole('peering', flags.logLevel);
  const metrics = createPartMetrics('peering');
  const { kubeconfig, context } = flags;
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig, context });
  const home = createClient(world.network.http(access), { world, userAgent: 'portolan-peering' });
  await withParts(log, async (parts) => {
    parts.add('home client', () => home.close());
    const role = await startPeeringRole({
      ...{ world, log, metrics, home, listen },
      namespace: flags.namespace,
      secretsNamespace: flags.secretsNamespace,
      advertise: flags.advertise ?? defaultAddress(listen),
      mesh: {
        trustDomain: flags.trustDomain,
        domain: flags.domain ?? flags.trustDomain,
        ingress: flags.ingress.map(parseIngress),
      },
      own: {
        zones: [...ownZones, ...flags.zone],
        ranges: [...flags.ownRange, ...(flags.addressRange ?? [])],
        hosts: [...serverHosts(access), ...ownAddresses()],
      },
      versions: parseVersions(flags.versions),
      addressRanges: flags.addressRange,
      isReplicated: flags.replicated === true,
      ingressProbeMs: parseIngressProbe(flags.ingressProbe),
      ...filesOf(flags),
    });
    parts.add('peering', () => role.stop());
    // Large services of a peer leave much behind that is not used again: it is not to pile up.
    stayCompact();
    const admin = await startPeeringAdmin({ listen: parseListen(flags.adminListen), metrics, role });
    parts.add('admin endpoint', () => admin.close());
    const stopped = untilStopped(log, () => parts.stop());
    process.stdout.write(`ready ${role.advertised}\nadmin ${admin.url}\n`);
    await stopped;
  });
}

function defaultAddress({ host, port }: { host: string; port: number }): string {
  const name = host === '0.0.0.0' || host === '::' || host === '' ? '127.0.0.1' : host;
  return formatHostPort(name, port);
}

function parseIngress(text: string): { address: string; port: number } {
  const ingress = parseHostPort(text);
  if (ingress === undefined || ingress.port === 0)
    throw usageError(`--ingress ${text}: expected HOST:PORT, such as ingress.acme.example:15443`);
  return { address: ingress.host, port: ingress.port };
}

function parseIngressProbe(text: string): number {
  if (!/^\d{1,4}$/.test(text)) throw usageError(`--ingress-probe ${text}: expected seconds, or 0 for never`);
  return 1000 * Number(text);
}

function parseVersions(text: string): PeerVersion[] {
  return text.split(',').map((version) => {
    if (version === 'v1alpha1' || version === 'v1alpha2') return version;
    throw usageError(`--versions ${text}: there are v1alpha1 and v1alpha2`);
  });
}

function filesOf({ cert, key, bundle }: PeeringFlags) {
  if (cert === undefined && key === undefined && bundle === undefined) return {};
  if (cert === undefined || key === undefined || bundle === undefined)
    throw usageError('--cert, --key and --bundle go together');
  return { files: { certificate: cert, key, bundle } };
}
