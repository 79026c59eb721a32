// `portolan dns`: a cluster's resolver for cluster.local, clusterset.local, stub zones, and what lies beyond.

import type { Command } from 'commander';
import type { LogLevel } from '../base/log.ts';
import { parseListen, processLog, untilStopped } from './process.ts';

interface DnsFlags {
  readonly listen: string[];
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly clusterId: string;
  readonly zone?: string;
  readonly region?: string;
  readonly workers: string;
  readonly client: string[];
  readonly forward: string[];
  readonly clusterNames?: boolean;
  readonly logLevel: LogLevel;
}

export function addDnsCommand(program: Command): void {
  program
    .command('dns')
    .description("the cluster's resolver: cluster.local, clusterset.local, and what lies beyond")
    .requiredOption('--cluster-id <id>', 'the cluster it stands in')
    .option('--listen <host:port...>', 'where to listen, UDP and TCP; port 0 takes a free one', ['127.0.0.1:53'])
    .option('--kubeconfig <file>', 'the home to watch (default: $KUBECONFIG, ~/.kube/config, or the Pod we run in)')
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--zone <zone>', 'the zone it stands in, for those who prefer near endpoints')
    .option('--region <region>', 'the region it stands in')
    .option('--workers <n>', 'threads that share the port; 0 serves in the main one', '0')
    .option('--client <cidr...>', 'who may ask (default: private and loopback addresses)', [])
    .option('--forward <host:port...>', 'nameservers for all other names; without any they are refused', [])
    .option('--cluster-names', 'also answer <cluster>.<service>.<namespace>.svc.clusterset.local')
    .option('--log-level <level>', 'debug, info, warn or error', 'info')
    .addHelpText('after', '\nUntil its watches have synced it answers SERVFAIL, never NXDOMAIN.\n')
    .action(run);
}

async function run(flags: DnsFlags): Promise<void> {
  const addresses = flags.listen.map(parseListen);
  const ports = new Set(addresses.map(({ port }) => port));
  if (ports.size !== 1) throw new Error(`--listen ${flags.listen.join(' ')}: all addresses must have the same port`);
  const [{ createRealWorld }, { createRealHost }, { findHome }, { createClient }, { startResolver }] =
    await Promise.all([
      import('../base/real/world.ts'),
      import('../base/real/host.ts'),
      import('../client/kubeconfig.ts'),
      import('../client/client.ts'),
      import('./resolver.ts'),
    ]);
  const world = createRealWorld();
  const log = processLog(world, flags.logLevel);
  const access = await findHome({
    host: createRealHost(),
    clock: world.clock,
    kubeconfig: flags.kubeconfig,
    context: flags.context,
  });
  const transport = world.network.http(access);
  const resolver = await startResolver({
    world,
    log,
    home: createClient(transport, { world, userAgent: 'portolan-dns' }),
    cluster: { id: flags.clusterId, zone: flags.zone, region: flags.region },
    hosts: addresses.map(({ host }) => host),
    port: addresses[0]?.port ?? 53,
    workers: Number(flags.workers),
    ...(flags.client.length === 0 ? {} : { clients: flags.client }),
    forwardTo: flags.forward,
    hasClusterNames: flags.clusterNames,
  });
  process.stdout.write(`listening ${addresses.map(({ host }) => `${host}:${resolver.port}`).join(' ')}\n`);
  resolver.whenSynced().then(() => process.stdout.write('ready\n'));
  await untilStopped(log, async () => {
    await resolver.stop();
    transport.close();
  });
}
