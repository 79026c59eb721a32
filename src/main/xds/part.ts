// The parts of `portolan xds`: sources that follow the home, the discovery service, its two listeners, and how it reports
// back: a Lease, and conditions while it leads.

import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { codes } from '../../base/grpc/status.ts';
import { serveGrpc } from '../../base/grpc/transport-server.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { LookUp } from '../../base/net/followed-names.ts';
import { Parts } from '../../base/parts.ts';
import type { ProbeMutualTls } from '../../base/real/prober-mutual-tls.ts';
import type { World } from '../../base/world.ts';
import { certificateFacts } from '../../base/x509/certificates.ts';
import { builtinPlugins } from '../../external/plugins/builtin.ts';
import type { Plugins } from '../../external/plugins/plugin.ts';
import { defaultOutboundPorts, type OutboundPorts } from '../../external/rules/redirects.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { reviewToken } from '../../kube/client/token-review.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { standForLeader } from '../../kube/controller/leader.ts';
import { keepPartLease, type PartLease } from '../../kube/controller/part-lease.ts';
import { claimedAudiences } from '../../kube/objects/admin-ticket.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import type { ResourceType } from '../../kube/objects/object.ts';
import { externalNamespace, proxyTokenAudience, xdsRootsName } from '../../kube/objects/ours.ts';
import { partLabel, partState } from '../../kube/objects/part-lease.ts';
import { callersAnnotation } from '../../kube/objects/reports/access-report.ts';
import {
  formatProgrammed,
  type ProgrammedByRole,
  programmedAnnotation,
} from '../../kube/objects/reports/data-plane.ts';
import { formatGatewayChecks, gatewaysAnnotation } from '../../kube/objects/reports/gateway-checks.ts';
import type { Reserved } from '../../peering/rules/link-config.ts';
import { anyAddress } from '../../xds/bodies.ts';
import { gatewayPort } from '../../xds/gateways/names.ts';
import {
  certifyProxy,
  issueServer,
  openAuthority,
  renewedCertificateMs,
  serverCertificateMs,
} from '../../xds/identity/authority.ts';
import { endingAnnotation, formatEnding } from '../../xds/identity/ending-certificates.ts';
import { lifeOf } from '../../xds/identity/proxy-files.ts';
import { formatNodeId, judgeProxy, type ProxyCaller } from '../../xds/identity/proxy-identity.ts';
import { Issuance } from '../../xds/server/issuance.ts';
import { Renewal } from '../../xds/server/renewal.ts';
import { XdsService } from '../../xds/server/service.ts';
import { ClustersetSource } from '../../xds/sources/clusterset.ts';
import { ExternalSource } from '../../xds/sources/external.ts';
import { GatewayChecks } from '../../xds/sources/gateway-checks.ts';
import { type GatewayTimes, startGatewaysSource } from '../../xds/sources/gateways.ts';
import { watchSecrets } from '../../xds/sources/home-secrets.ts';
import { IngressSource } from '../../xds/sources/ingress.ts';
import { startMeshSource } from '../../xds/sources/mesh.ts';
import { watchOwnSlices } from '../../xds/sources/own-slices.ts';
import { PeersSource } from '../../xds/sources/peers.ts';
import type { XdsSource } from '../../xds/sources/source.ts';
import { ConditionWriter } from '../../xds/status/condition-writer.ts';
import { complaintsAnnotation, complaintsIn, formatComplaints } from '../../xds/status/lease-report.ts';
import type { Complaint } from '../../xds/status/verdicts.ts';
import { virtualListener } from '../../xds/virtual-listener.ts';
import { WithheldList } from '../../xds/withheld.ts';
import { ownZones } from '../identity/own-names.ts';
import { followReserved } from '../identity/reserved.ts';
import { nodeName, whenHomeAnswers } from '../process.ts';

export interface XdsRoleOptions {
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly home: Client;
  readonly namespace: string;
  /** Of the Secret with its authority; `namespace` if left out. */
  readonly secretsNamespace?: string;
  /** Of the Secrets of peering, and of those that Peers name; `namespace` if left out. */
  readonly peeringNamespace?: string;
  readonly cluster: string;
  /** Where the cluster is, if the clusterset does not say. */
  readonly zone?: string;
  readonly region?: string;
  /** Absent: no listener with TLS. */
  readonly listen?: { readonly host: string; readonly port: number };
  /** Names and addresses of the server beside its own, for its certificate. */
  readonly hosts: readonly string[];
  readonly socket?: { readonly path: string; readonly mode: number };
  readonly ports: XdsPorts;
  /** The gateway listens on this address alone; everywhere if absent. */
  readonly gatewayAddress?: string;
  readonly gatewayTimes?: GatewayTimes;
  /** The sidecar listens on this address alone, and on those of peers' services: nothing redirects connections to it. */
  readonly boundTo?: string;
  /** Looks up the names that peers give as their ingress. */
  readonly lookUp: LookUp;
  /** Addresses of this cluster beside those that its home knows: no name of a peer may lead there. */
  readonly own?: Pick<Reserved, 'ranges' | 'hosts'>;
  /** Plugins of external services; the built-in ones when absent. */
  readonly plugins?: Plugins;
  /** Tries gateways of other networks; they are not tried if absent. */
  readonly probeGateway?: ProbeMutualTls;
  /** NAMESPACE/ACCOUNT of workloads whose Pods may have a sidecar of their own; none if absent. */
  readonly sidecarAccounts?: ReadonlySet<string>;
  /** How long a renewed certificate of a proxy lasts. */
  readonly proxyCertificateMs?: number;
  /** How long refusals of a proxy that is away count. */
  readonly refusalsKeptMs?: number;
}

interface XdsPorts {
  readonly virtual: number;
  readonly ingress: number;
  readonly gateway?: number;
  readonly outbound?: OutboundPorts;
}

export interface XdsRole {
  readonly service: XdsService;
  readonly lease: PartLease;
  /** Port of the listener with TLS; 0 without one. */
  readonly port: number;
  /** Why it does not serve yet; empty once it does. */
  notReady(): string;
  /** Why what it serves may be old; empty if it is not. */
  staleWhy(): string;
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

const messageBytesMax = 16 << 20;
const keepAliveMs = 30_000;
const whyReading = 'the home has not been read yet';
const whyFailing = 'a watch at the home fails; see the log';

export async function startXdsRole(options: XdsRoleOptions): Promise<XdsRole> {
  const { world, log, metrics, home, namespace, cluster } = options;
  const parts = new Parts(log);
  let clusterset: ClustersetSource | undefined;
  const service = new XdsService({
    ...{ world, log, metrics, cluster, refusalsKeptMs: options.refusalsKeptMs },
    place: () => {
      const known = clusterset?.locality().clusters.get(cluster);
      return { cluster, zone: known?.zone ?? options.zone ?? '', region: known?.region ?? options.region ?? '' };
    },
  });
  parts.add('service', () => service.stop());
  try {
    const { views } = service;
    const address = options.boundTo ?? anyAddress;
    views.sidecar.replace('virtual listener', virtualListener(options.ports.virtual, address));
    const withheld = new WithheldList();
    const common = { world, log, client: home, views };
    clusterset = new ClustersetSource(common);
    const { flows } = service;
    const known = clusterset;
    flows.serviceAt = (address) => known.serviceAt(address);
    const { peeringNamespace: secretsNamespace = namespace } = options;
    const secrets = started(parts, watchSecrets({ ...common, namespace: secretsNamespace }));
    const externalSecrets = started(parts, watchSecrets({ ...common, namespace: externalNamespace }));
    const slices = started(parts, watchOwnSlices(common));
    const mesh = startMeshSource({ ...common, namespace, secretsNamespace, secrets });
    const peering = { ...common, namespace, secretsNamespace, secrets, mesh, withheld };
    const own = { zones: ownZones, ranges: options.own?.ranges ?? [], hosts: options.own?.hosts ?? [] };
    const reserved = followReserved({ world, log, home, ...own, onChanged: () => peers.reservedChanged() });
    parts.add('reserved names', () => reserved.stop());
    const bound = { isBound: options.boundTo !== undefined, lookUp: options.lookUp };
    const peers = new PeersSource({ ...peering, ...bound, reserved: () => reserved.current() });
    const gateways = startGatewaysSource({
      ...{ ...common, cluster, clusterset, slices, address, times: options.gatewayTimes },
      ...{ port: options.ports.gateway ?? gatewayPort, gatewayAddress: options.gatewayAddress },
      ...{ withheld, secretsNamespace: options.secretsNamespace ?? namespace },
    });
    metrics.certificateEnd('gateway', () => gateways.certificateEndMs());
    metrics.certificateEnd('gateway-authority', () => gateways.rootEndMs());
    const sources: XdsSource[] = [
      clusterset,
      mesh,
      {
        staleSinceMs: () => peers.staleSinceMs(),
        stop: () => peers.stop(),
        whenSynced: () => reserved.whenRead().then(() => peers.whenSynced()),
      },
      new ExternalSource({
        ...{ ...common, namespace, secrets: externalSecrets, cluster, plugins: options.plugins ?? builtinPlugins },
        ...{ ports: options.ports.outbound ?? defaultOutboundPorts, otherPorts: [options.ports.virtual] },
        address,
      }),
      new IngressSource({ ...peering, slices, port: options.ports.ingress, address }),
      gateways,
    ];
    for (const source of sources) parts.add('source', () => source.stop());
    let isSynced = false;
    const synced = Promise.all([secrets, ...sources].map((one) => one.whenSynced())).then(() => void (isSynced = true));
    const port = await listen({ ...options, service, parts, isSynced: () => isSynced });
    const checks =
      options.probeGateway &&
      new GatewayChecks({
        ...{ timers: world.timers, metrics, probe: options.probeGateway, ways: gateways.ways },
        onChange: () => lease.changed(),
      });
    const lease = report({ ...options, service, parts, withheld, gatewaysFound: () => checks?.found ?? new Map() });
    void synced.then(() => checks?.start());
    parts.add('checks of gateways', () => checks?.stop());
    return {
      service,
      lease,
      port,
      notReady: () => (isSynced ? '' : whyReading),
      staleWhy: () =>
        lease.problem() || (sources.some((source) => source.staleSinceMs() !== undefined) ? whyFailing : ''),
      whenSynced: () => synced,
      stop: () => parts.stop(),
    };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

/** Until the part ends. */
function started<Copy extends { readonly type: ResourceType; start(): void; stop(): void }>(
  parts: Parts,
  copy: Copy,
): Copy {
  copy.start();
  parts.add(`copy of ${copy.type.plural}`, () => copy.stop());
  return copy;
}

type Listening = XdsRoleOptions & { service: XdsService; parts: Parts; isSynced: () => boolean };

async function listen(options: Listening): Promise<number> {
  const { world, log, metrics, home, namespace, cluster, service, parts, isSynced } = options;
  // An empty configuration by mistake would take everything away from a proxy.
  const early = { kind: 'refused', code: codes.unavailable, reason: whyReading } as const;
  const shared = {
    ...{ messageBytesMax, keepAliveMs, log },
    callerKey: ({ identity }: ProxyCaller) => (identity === undefined ? 'local' : `${identity.role} ${identity.name}`),
    accept: service.accept.bind(service),
    onRefused: ({ code, reason, from }: { code: number; reason: string; from: string }) => {
      if (code !== codes.unauthenticated) return;
      service.meter.turnedAway('certificate');
      log.debug('a proxy was refused', { reason, from });
    },
  };
  if (options.socket !== undefined) {
    const { path, mode } = options.socket;
    await rm(path, { force: true });
    const judge = () => (isSynced() ? ({ kind: 'trusted', caller: { identity: undefined } } as const) : early);
    const socket = { host: '', port: 0, socketPath: path, socketMode: mode };
    const server = await serveGrpc<ProxyCaller>({ ...shared, ...socket, judge });
    parts.add('socket', () => server.close());
  }
  if (options.listen === undefined) return 0;
  const { secretsNamespace = namespace } = options;
  const authorityOptions = { world, home, namespace: secretsNamespace, formerNamespace: namespace, cluster };
  const authority = await whenHomeAnswers(options, () => openAuthority(authorityOptions));
  const issue = () => issueServer(authorityOptions, authority, namesOf(options));
  const about = () => ({ authority: authority.certificate, cluster, nowMs: world.clock.wallMs() });
  const lifetimeMs = options.proxyCertificateMs ?? renewedCertificateMs;
  const renewal = new Renewal({
    clock: world.clock,
    certify: (identity, key) => certifyProxy(authorityOptions, authority, { identity, key, lifetimeMs }),
    onRenewed: (identity, certificate) => service.proxies.renewed(formatNodeId(identity), lifeOf(certificate)),
  });
  const issuance = new Issuance({
    cluster,
    sidecarAccounts: options.sidecarAccounts ?? new Set(),
    claimedAudiences,
    review: (token) => reviewToken(home, token, [proxyTokenAudience]),
    certify: (identity, key) => certifyProxy(authorityOptions, authority, { identity, key, lifetimeMs }),
  });
  await whenHomeAnswers(options, () => publishRoots(home, namespace, authority.certificate));
  let served = issue();
  metrics.certificateEnd('xds-serving', () => certificateFacts(served.certificate).notAfterMs);
  const server = await serveGrpc<ProxyCaller>({
    ...shared,
    ...options.listen,
    tls: served,
    route: (request) => renewal.route(request) ?? issuance.route(request),
    judge: (presented) => (isSynced() ? judgeProxy(presented, about()) : early),
  });
  parts.add('listener', () => server.close());
  const renew = () => {
    served = issue();
    server.setCertificate(served.certificate, served.key);
    timer = world.timers.after(serverCertificateMs / 2, renew);
  };
  let timer = world.timers.after(serverCertificateMs / 2, renew);
  parts.add('certificate', () => timer.cancel());
  return server.port;
}

/** For Pods of Envoys, which have no right to read anything. */
/** gRPC clients verify the name or address that they dial; Envoys know this server by a name of its own. */
function namesOf({ listen, hosts }: Pick<XdsRoleOptions, 'listen' | 'hosts'>): string[] {
  const isWildcard = listen === undefined || listen.host === '0.0.0.0' || listen.host === '::';
  return [...(isWildcard ? ['127.0.0.1', 'localhost'] : [listen.host]), ...hosts];
}

async function publishRoots(client: Client, namespace: string, certificate: string): Promise<void> {
  const metadata = { name: xdsRootsName, namespace };
  const data = { 'ca.crt': certificate };
  const present = await getOrUndefined<ConfigMap>(client, configMapType, metadata);
  const change = (there: ConfigMap | undefined) =>
    there === undefined ? { apiVersion: 'v1', kind: 'ConfigMap', metadata, data } : { ...there, data };
  await apply<ConfigMap>({ client, type: configMapType, present, change, onConflict: 'retry' });
}

type Reporting = XdsRoleOptions & {
  service: XdsService;
  parts: Parts;
  withheld: WithheldList;
  gatewaysFound: () => ReadonlyMap<string, string>;
};

/** Through the Lease, so that the leading process knows what the proxies of all of them refused. */
function report(options: Reporting): PartLease {
  const { world, log, home, namespace, service, parts, withheld } = options;
  const identity = world.random.uuid().slice(0, 8);
  const machine = hostname();
  const own = () => complaintsOf(service, withheld, world.clock.monotonicMs());
  const lease = keepPartLease({
    ...{ client: home, world, log, namespace, id: machine, node: nodeName() },
    part: 'xds',
    extras: () => ({
      [complaintsAnnotation]: formatComplaints(own()),
      [callersAnnotation]: 'true',
      [endingAnnotation]: formatEnding(service.proxies.ending(world.clock.wallMs())),
      [programmedAnnotation]: formatProgrammed(programmedIn(options)),
      ...gatewayAnnotations(options.gatewaysFound()),
    }),
  });
  parts.add('lease', () => lease.stop());
  const changed = () => lease.changed();
  const offs = [service.onRefusals(changed), withheld.onChange(changed), service.onProgrammed(changed)];
  parts.add('report', () => {
    for (const off of offs) off();
  });
  const candidate = standForLeader({
    ...{ client: home, world, log, namespace },
    name: 'portolan-xds-leader',
    identity,
    whileLeading: async (signal) => {
      const labelSelector = `${partLabel}=xds`;
      const leases = createInformer<Lease>({ client: home, world, log, namespace, type: leaseType, labelSelector });
      // A process that ended without taking its Lease along has no proxies any more. Our own is older than what we know.
      const counts = (one: Lease) =>
        one.spec?.holderIdentity !== lease.holder && partState(one, world.clock.wallMs()).kind === 'reported';
      const complaints = () => [...own(), ...[...leases.values()].filter(counts).flatMap(complaintsIn)];
      const writer = new ConditionWriter({ home, world, log, namespace, complaints });
      const wake = () => writer.wake();
      const sources = [service.onRefusals(wake), withheld.onChange(wake), leases.on(wake), () => leases.stop()];
      leases.start();
      writer.wake();
      // Proxies of a process that led before come back within that time, and refuse again what they refused.
      const adoption = world.timers.after(service.refusalsKeptMs, () => void writer.adopt());
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      for (const off of sources) off();
      adoption.cancel();
      writer.stop();
    },
  });
  parts.add('leader', () => candidate.stop());
  return lease;
}

/** Nothing where all clusters share one network. */
function gatewayAnnotations(found: ReadonlyMap<string, string>): Record<string, string> {
  return found.size === 0 ? {} : { [gatewaysAnnotation]: formatGatewayChecks(found) };
}

function programmedIn({ service, boundTo }: { service: XdsService; boundTo?: string }): ProgrammedByRole {
  const sidecar = service.proxies.programmed('sidecar');
  const ingress = service.proxies.programmed('ingress');
  const bound = boundTo === undefined ? {} : { isBound: true };
  return { ...(sidecar && { sidecar: { ...sidecar, ...bound } }), ...(ingress && { ingress }) };
}

function* complaintsOf(service: XdsService, withheld: WithheldList, nowMs: number): Iterable<Complaint> {
  for (const { id, refused } of service.proxies.refusing(nowMs)) {
    for (const { causes, type, name, message } of refused) {
      const text = `proxy ${id} refused ${type} ${name}: ${message}`;
      for (const cause of causes) yield { cause, reason: 'RefusedByProxy', message: text };
    }
  }
  for (const { cause, reason } of withheld.values()) yield { cause, reason: 'Withheld', message: reason };
}
