// `portolan peering`: the gRPC endpoint other meshes talk to, and our side of theirs.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { clusterSetDefaults } from '../../clusterset/kinds/cluster-set.ts';
import { parseListen, processLog, untilStopped } from '../../main/process.ts';
import type { PeerVersion } from '../../peering/kinds/peer.ts';

interface PeeringFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace: string;
  readonly listen: string;
  readonly advertise?: string;
  readonly trustDomain: string;
  readonly domain?: string;
  readonly ingress: string[];
  readonly zone: string[];
  readonly versions: string;
  readonly replicated?: boolean;
  readonly addressRange: string[];
  readonly cert?: string;
  readonly key?: string;
  readonly bundle?: string;
  readonly adminListen: string;
  readonly logLevel: LogLevel;
}

export function addPeeringCommand(program: Command): void {
  program
    .command('peering')
    .description('the gRPC endpoint other meshes talk to, and our side of theirs')
    .requiredOption('--trust-domain <domain>', 'of this mesh, such as acme.example')
    .option('--kubeconfig <file>', 'the home (default: $KUBECONFIG, ~/.kube/config, or the Pod we run in)')
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--namespace <name>', 'where Peers, PeerServices and Secrets lie', 'portolan-system')
    .option('--listen <host:port>', 'where peers connect; port 0 takes a free one', '0.0.0.0:8008')
    .option('--advertise <host:port>', 'how peers reach that (default: what is listened on)')
    .option('--domain <name>', 'services are named <service>.<namespace>.<name> to peers (default: the trust domain)')
    .option('--ingress <host:port...>', 'the ingress of this mesh, where peers send their connections', [])
    .option('--zone <name...>', 'zones of our own, in which no peer may name anything', [
      'cluster.local',
      'clusterset.local',
      'peers.local',
    ])
    .option('--versions <list>', 'versions of the protocol that are spoken', 'v1alpha1,v1alpha2')
    .option(
      '--address-range <cidr...>',
      'where services of peers get their addresses from, one range for each family',
      [...clusterSetDefaults.addressRanges.peers],
    )
    .option('--replicated', 'another process like this works on the same home: one of them takes, both give')
    .option('--cert <file>', 'our certificate in PEM, looked at again and again (default: a Secret of the home)')
    .option('--key <file>', 'its key in PEM')
    .option('--bundle <file>', 'the roots by which peers know us, in PEM')
    .option('--admin-listen <host:port>', 'where /metrics, /livez and /readyz are', '127.0.0.1:0')
    .option('--log-level <level>', 'debug, info, warn or error', 'info')
    .action(run);
}

async function run(flags: PeeringFlags): Promise<void> {
  const [{ createRealWorld }, { createRealHost }, { createMetrics }, { createClient }, { findHome }] =
    await Promise.all([
      import('../../base/real/world.ts'),
      import('../../base/real/host.ts'),
      import('../../base/metrics.ts'),
      import('../../kube/client/client.ts'),
      import('../../kube/client/kubeconfig.ts'),
    ]);
  const { startPeeringRole } = await import('../../main/peering.ts');
  const { startAdminEndpoint } = await import('../../base/real/admin-endpoint.ts');
  const { Parts } = await import('../../base/parts.ts');
  const listen = parseListen(flags.listen);
  const world = createRealWorld();
  const log = processLog(world, flags.logLevel);
  const metrics = createMetrics();
  const { kubeconfig, context } = flags;
  const where = { ...(kubeconfig === undefined ? {} : { kubeconfig }), ...(context === undefined ? {} : { context }) };
  const access = await findHome({ host: createRealHost(), clock: world.clock, ...where });
  const home = createClient(world.network.http(access), { world, userAgent: 'portolan-peering' });
  const parts = new Parts(log);
  parts.add('home client', () => home.close());
  const role = await startPeeringRole({
    ...{ world, log, metrics, home, listen },
    namespace: flags.namespace,
    advertise: flags.advertise ?? defaultAddress(listen),
    mesh: {
      trustDomain: flags.trustDomain,
      domain: flags.domain ?? flags.trustDomain,
      ingress: flags.ingress.map(parseIngress),
    },
    ownZones: flags.zone,
    versions: parseVersions(flags.versions),
    addressRanges: flags.addressRange,
    isReplicated: flags.replicated === true,
    ...filesOf(flags),
  });
  parts.add('peering', () => role.stop());
  const status = () => ({
    owner: [...role.peering.owner.reports()].map(({ refusals, ...report }) => ({ ...report, refused: refusals.size })),
    consumer: [...(role.peering.consumer()?.reports() ?? [])].map(({ refusals, ...report }) => ({
      ...report,
      refused: refusals.size,
    })),
  });
  const admin = await startAdminEndpoint({
    listen: parseListen(flags.adminListen),
    metrics,
    notReady: () => '',
    status,
  });
  parts.add('admin endpoint', () => admin.close());
  const stopped = untilStopped(log, () => parts.stop());
  process.stdout.write(`ready ${role.advertised}\nadmin ${admin.url}\n`);
  await stopped;
}

function defaultAddress({ host, port }: { host: string; port: number }): string {
  const name = host === '0.0.0.0' || host === '::' || host === '' ? '127.0.0.1' : host;
  return `${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function parseIngress(text: string): { address: string; port: number } {
  const parts = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(parts?.[3]);
  if (parts === null || port < 1 || port > 65535)
    throw new Error(`--ingress ${text}: expected HOST:PORT, such as ingress.acme.example:15443`);
  return { address: parts[1] ?? parts[2] ?? '', port };
}

function parseVersions(text: string): PeerVersion[] {
  return text.split(',').map((version) => {
    if (version === 'v1alpha1' || version === 'v1alpha2') return version;
    throw new Error(`--versions ${text}: there are v1alpha1 and v1alpha2`);
  });
}

function filesOf({ cert, key, bundle }: PeeringFlags) {
  if (cert === undefined && key === undefined && bundle === undefined) return {};
  if (cert === undefined || key === undefined || bundle === undefined)
    throw new Error('--cert, --key and --bundle go together');
  return { files: { certificate: cert, key, bundle } };
}
