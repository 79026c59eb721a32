// The process of `portolan up`: from flags to one cluster's whole set, and its end. All parts live in this process, so that
// they stop together; a part that fails ends the process with an error, and what runs the process starts it again.

import { join as joinPath, resolve } from 'node:path';
import type { Log } from '../../base/log.ts';
import { formatHostPort, type HostPort } from '../../base/net/host-port.ts';
import type { Parts } from '../../base/parts.ts';
import { createRealHost } from '../../base/real/host.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import type { World } from '../../base/world.ts';
import { join } from '../../cli/clusterset/join.ts';
import { keepGateways } from '../../cli/clusterset/networks.ts';
import { findServiceRanges } from '../../cli/clusterset/own-ranges.ts';
import { isLoopbackHost } from '../../cli/reachable.ts';
import type { UpFlags } from '../../cli/roles/up.ts';
import { type UpConfig, upConfig } from '../../cli/roles/up-flags.ts';
import { findMembership } from '../../clusterset/explain/consult.ts';
import { install } from '../../kube/client/apply.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { startAgentPart } from '../agent/part.ts';
import { etcdOptionsOf, replicasOf } from '../home/etcd-options.ts';
import { type Home, homeNameOf, startHome } from '../home/part.ts';
import { ownAddresses, ownZones } from '../identity/own-names.ts';
import { openRole, untilStopped, withParts } from '../process.ts';
import { readSnapshotKey } from '../snapshot/key-file.ts';
import type { UpEnvoyOptions } from './envoy.ts';
import { keptListen } from './kept-port.ts';
import { followMembership } from './member-parts.ts';
import { startPage } from './page.ts';
import { upScreen } from './screen.ts';

interface Hands {
  readonly world: World;
  readonly log: Log;
  readonly host: ReturnType<typeof createRealHost>;
  readonly parts: Parts;
  readonly directory: string;
  readonly say: (part: string, text: string) => void;
  /** Ends the process with this error. */
  readonly fail: (error: unknown) => void;
  /** Aborted when the process was asked to stop. */
  readonly signal: AbortSignal;
}

const anyPort = { host: '127.0.0.1', port: 0 };
const membershipMs = 7 * 24 * 3_600_000;

export async function runUp(flags: UpFlags): Promise<void> {
  const host = createRealHost();
  const config = await upConfig(host, flags);
  const { world, log } = await openRole('up', flags.logLevel);
  const directory = resolve(flags.data);
  const say = (part: string, text: string) => process.stdout.write(`${part.padEnd(8)} ${text}\n`);
  await withParts(log, async (parts) => {
    const failed = Promise.withResolvers<never>();
    const ending = new AbortController();
    const stopped = untilStopped(log, () => {
      ending.abort();
      return parts.stop();
    });
    const hands = { world, log, host, parts, directory, say, fail: failed.reject, signal: ending.signal };
    const started = startAll(hands, config, flags).then((home) =>
      process.stdout.write(upScreen(home.server, home.kubeconfig)),
    );
    const ended = started.then(
      () => stopped,
      (error) => (ending.signal.aborted ? stopped : Promise.reject(error)),
    );
    await Promise.race([stopped, failed.promise, ended]);
    // A part that was just starting when the signal came.
    started.then(
      () => parts.stop(),
      () => {},
    );
  });
}

async function startAll(hands: Hands, config: UpConfig, flags: UpFlags): Promise<Home> {
  const { world, log, host, parts, directory, say } = hands;
  const isReachable = !isLoopbackHost(config.listen.host);
  const listen = await keptListen(world, directory, config);
  const home = await startHome({
    ...{ world, log, directory, listen, name: flags.name ?? config.token?.clusterId },
    snapshots: flags.snapshots,
    snapshotKey: await readSnapshotKey(host, flags.snapshotKeyFile, '--snapshot-key-file'),
    replicas: replicasOf(flags),
    etcd: await etcdOptionsOf(host, flags),
    ...{ onStoreLost: hands.fail, signal: hands.signal },
    ...(isReachable && config.advertise !== undefined ? { advertise: config.advertise } : {}),
  });
  parts.add('home', () => home.stop());
  say('home', `${home.server}, kubeconfig ${home.kubeconfig}`);
  const client = createClient(home.transport, { world, userAgent: 'portolan-up' });
  for (const name of flags.namespace) await install(client, manifest(namespaceType, { name }, {}));
  if (config.token !== undefined) await joinOnce(hands, client, config);
  const agent = await startAgentPart({ world, host, log, home: client, listen: anyPort });
  parts.add('agent', () => agent.stop());
  say('agent', `admin ${agent.url}`);
  const name = flags.name ?? homeNameOf(directory);
  const { region, zone, dns, stub, proxy, carriesServices } = config;
  const hasEnvoy = flags.envoy !== undefined && config.peering !== undefined;
  const routing = { proxy, carriesServices, hasEnvoy };
  const member = { ...hands, home: client, name, region, zone, dns, stub, ...routing, onFailed: hands.fail };
  const members = followMembership(member);
  parts.add('resolver and proxy', () => members.stop());
  await members.whenStarted();
  if (config.peering !== undefined) await startPeering(hands, { home, client, config });
  const page = await startPage({ world, log, home, client, directory, listen: flags.dashboard });
  if (page !== undefined) {
    parts.add('dashboard', () => page.stop());
    say('page', page.link);
  }
  const program = typeof flags.envoy === 'string' ? flags.envoy : '';
  if (flags.envoy !== undefined) await startEnvoys(hands, client, { program, config });
  if (config.gateway !== undefined) await startGateway(hands, client, { program, at: config.gateway });
  return home;
}

/** The same command line starts it again: a token that was used is not needed any more. */
async function joinOnce({ world, host, say }: Hands, home: Client, config: UpConfig): Promise<void> {
  const { token, region, zone, network } = config;
  const { clusterId, clusterset } = token!;
  const present = await findMembership(home);
  if (present?.clusterId === clusterId && present.clusterset === clusterset)
    return say('join', `this cluster is ${clusterId} in clusterset ${clusterset} already`);
  const ofNetwork = network === undefined ? {} : { network };
  const claims = { region, zone, ...ofNetwork, podRanges: [], serviceRanges: await findServiceRanges(home) };
  const deps = { world, host, print: () => {}, setExitCode: () => {} };
  const request = { home, token: token!, claims, lifetimeMs: membershipMs };
  await join(deps, { ...request, found: { arePods: true, areServices: true } });
  say('join', `this cluster is ${clusterId} in clusterset ${clusterset}`);
}

async function startPeering(
  { world, log, parts, say }: Hands,
  { home, client, config }: { home: Home; client: Client; config: UpConfig },
): Promise<void> {
  const { trustDomain, listen, ingress } = config.peering!;
  const [{ startPeeringRole }, { startPeeringAdmin }] = await Promise.all([
    import('../peering/part.ts'),
    import('../peering/admin.ts'),
  ]);
  const metrics = createPartMetrics('peering');
  const advertised = config.advertise?.host ?? (isWildcard(listen.host) ? '127.0.0.1' : listen.host);
  const role = await startPeeringRole({
    ...{ world, log, metrics, home: client, listen, namespace: systemNamespace },
    advertise: formatHostPort(advertised, listen.port),
    mesh: { trustDomain, domain: trustDomain, ingress: ingress.map(({ host, port }) => ({ address: host, port })) },
    own: { zones: ownZones, ranges: [], hosts: [new URL(home.server).hostname, ...ownAddresses()] },
    versions: ['v1alpha1', 'v1alpha2'],
    isReplicated: false,
    ingressProbeMs: 6000,
  });
  parts.add('peering', () => role.stop());
  const admin = await startPeeringAdmin({ listen: anyPort, metrics, role });
  parts.add('admin endpoint of peering', () => admin.close());
  say('peering', `${role.advertised}, trust domain ${trustDomain}, admin ${admin.url}`);
}

/** Its roots and addresses go to the other members through the agent. */
async function startGateway(
  { world, log, parts, directory, say, fail }: Hands,
  home: Client,
  { program, at }: { readonly program: string; readonly at: HostPort },
): Promise<void> {
  const membership = await findMembership(home);
  if (membership === undefined) throw new Error('--gateway: this cluster is in no clusterset yet; add --join TOKEN');
  const { startUpEnvoy } = await import('./envoy.ts');
  const own = joinPath(directory, 'gateway');
  // Elsewhere a load balancer or another router leads here.
  const isHere = isLoopbackHost(at.host) || ownAddresses().includes(at.host);
  const gateway = { port: at.port, address: isHere ? at.host : undefined };
  const envoy = await startUpEnvoy({
    ...{ world, log, home, program, gateway, directory: own, role: 'gateway', onEnded: fail },
  });
  parts.add('gateway', () => envoy.stop());
  await envoy.whenConnected();
  await keepGateways(home, formatHostPort(at.host, at.port));
  say(
    'gateway',
    `${formatHostPort(at.host, at.port)}, configured by ${resolve(own, 'envoy.json')}, admin ${envoy.admin}`,
  );
  say('gateway', `used when the admin of the set has accepted it: portolan broker accept ${membership.clusterId}`);
}

/** One for connections that go out, and one for those of peers that come in where there is an ingress. */
async function startEnvoys(
  { world, log, parts, directory, say, fail }: Hands,
  home: Client,
  { program, config }: { readonly program: string; readonly config: UpConfig },
): Promise<void> {
  const { startUpEnvoy } = await import('./envoy.ts');
  const start = async (name: string, own: Pick<UpEnvoyOptions, 'directory' | 'role' | 'ingressPort'>) => {
    const envoy = await startUpEnvoy({ world, log, home, program, onEnded: fail, ...own });
    parts.add(name, () => envoy.stop());
    await envoy.whenConnected();
    say(name, `configured by ${resolve(own.directory, 'envoy.json')}, admin ${envoy.admin}`);
  };
  await start('envoy', { directory });
  say('envoy', config.peering === undefined ? notRedirected : onlyPeers);
  const [ingress] = config.peering?.ingress ?? [];
  if (ingress === undefined) return;
  const own = joinPath(directory, 'ingress');
  await start('ingress', { directory: own, role: 'ingress', ingressPort: ingress.port });
}

const howToRedirect =
  'are not redirected to it yet: run it as a user of its own and start portolan proxy --envoy --envoy-uid UID as root (docs/guides/envoy.md); their condition says NotRedirected until then';
const notRedirected = `names of external services and of peers resolve, and connections to them ${howToRedirect}`;
const onlyPeers = `names of external services resolve, and connections to them ${howToRedirect}`;

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
