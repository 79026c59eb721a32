// Keeps the resources of gateways current: those of this cluster's own gateway, from exports, imports, slices and the members
// that may call, and those that lead from its nodes to the gateways of clusters in other networks. A change of one service
// makes that service anew, and the internal listener that its chains share with a few others.

import type { World } from '../../base/world.ts';
import { certificateFacts } from '../../base/x509/certificates.ts';
import {
  type ClusterProperty,
  clusterPropertyType,
  clusterSetProperty,
} from '../../clusterset/kinds/cluster-property.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { callersOf } from '../../clusterset/rules/exports/callers.ts';
import { accessOf } from '../../clusterset/rules/exports/export-access.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';

import { gatewayResources, shardResource } from '../gateways/gateway.ts';
import { type NamedWay, namedWaysResources } from '../gateways/named-ways.ts';
import { gatewayIdentity, healthPath, memberDomain, nodeIdentity, shardOf } from '../gateways/names.ts';
import { nearHealthResources } from '../gateways/near-health.ts';
import { nearSideResources } from '../gateways/near-side.ts';
import { type ServedPort, servedPortsOf } from '../gateways/served-ports.ts';
import {
  authoritiesOf,
  type GatewayMembers,
  portChains,
  portEndpoints,
  portName,
  portResources,
} from '../gateways/service.ts';
import { callersTrust, certificateResource, gatewaySecret, gatewayTrust, nodeSecret } from '../gateways/trust.ts';
import { type NamedUdpWay, udpNearSideResources } from '../gateways/udp-near-side.ts';
import { leafLifeMs, type RootTimes } from '../identity/gateway-roots.ts';
import type { ProxyIdentity } from '../identity/proxy-identity.ts';
import { type CarriedProtocol, portKey, portNamesOf } from '../own-ports.ts';
import type { XdsResource } from '../resource.ts';
import type { ResourceSet } from '../view/resource-set.ts';
import type { WithheldList } from '../withheld.ts';
import { Batch } from './batch.ts';
import type { ClustersetSource } from './clusterset.ts';
import { GatewayAuthority } from './gateway-authority.ts';
import { type GatewayWay, gatewayProbeMs } from './gateway-checks.ts';
import { isCertificate } from './home-secrets.ts';
import { MeshCertificates, type MeshCertificatesOptions } from './mesh-certificates.ts';
import { onServiceSlices, slicesOf } from './own-slices.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';
import { WaysBeyond } from './ways-beyond.ts';
import { WaysByCluster } from './ways-by-cluster.ts';

export interface GatewaysSourceOptions extends SourceOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly cluster: string;
  readonly clusterset: ClustersetSource;
  readonly slices: Informer<EndpointSlice>;
  /** Of the Secret with the roots of this cluster. */
  readonly secretsNamespace: string;
  readonly withheld: WithheldList;
  readonly port: number;
  /** Where the gateway listens; everywhere if absent. */
  readonly gatewayAddress?: string;
  /** Where a node's proxy listens; everywhere if absent. */
  readonly address?: string;
  readonly times?: GatewayTimes;
}

/** Shorter in tests. */
export interface GatewayTimes {
  readonly roots?: RootTimes;
  readonly leafLifeMs?: number;
}

export interface GatewaysSource extends XdsSource {
  /** The ways to clusters in other networks, as a node's proxy has them, to try them. */
  ways(): readonly GatewayWay[];
  /** When the first of this cluster's own certificates for gateways ends. */
  certificateEndMs(): number | undefined;
  /** When its root ends that signs now. */
  rootEndMs(): number | undefined;
}

/** Certificates that are due are issued anew this often at least. */
const renewMsMax = 3_600_000;

export function startGatewaysSource(options: GatewaysSourceOptions): GatewaysSource {
  const { client, world, views, cluster, clusterset, slices } = options;
  const log = options.log.with({ source: 'gateways' });
  const exports = createInformer<ServiceExport>({ client, world, log, type: serviceExportType });
  const services = createInformer<Service, ReadonlyMap<string, string>>({
    ...{ client, world, log, type: serviceType, keep: portNamesOf },
  });
  const fieldSelector = `metadata.name=${clusterSetProperty}`;
  const properties = createInformer<ClusterProperty>({ client, world, log, type: clusterPropertyType, fieldSelector });
  const lifeMs = options.times?.leafLifeMs ?? leafLifeMs;
  const leaf = { lifetimeMs: lifeMs, keptMax: 10_000 };
  const ofGateways: MeshCertificatesOptions = { ...leaf, only: 'server', commonName: 'portolan gateway' };
  const ofNodes: MeshCertificatesOptions = { ...leaf, only: 'client', commonName: 'portolan node' };
  const gatewayCertificates = new MeshCertificates(world, ofGateways);
  const nodeCertificates = new MeshCertificates(world, ofNodes);
  const authority = new GatewayAuthority({
    ...{ world, log, client, cluster, namespace: options.secretsNamespace, times: options.times?.roots },
    onChange: () => batch.add(certificatesKey),
  });
  /** Ports of exported services, by `namespace/name`. */
  const served = new Map<string, readonly ServedPort[]>();
  const shards = new Map<number, Map<string, ServedPort>>();
  let members: GatewayMembers = { own: cluster, clusterSet: '', callers: [] };
  const named = new WaysByCluster<NamedWay>();
  const udp = new WaysByCluster<NamedUdpWay>();
  const beyond = new WaysBeyond(options.withheld, log);
  /** Ports of the listeners for clusters that there is a way to. */
  let near = new Map<string, number>();

  const batch = new Batch(world.timers, (keys) => {
    const services = [...keys].filter((key) => key !== networksKey && key !== certificatesKey);
    const asked = new Set<string>();
    for (const key of services) {
      for (const id of named.replace(key, clusterset.namedWays(key))) asked.add(id);
      for (const id of udp.replace(key, clusterset.udpWays(key))) asked.add(id);
    }
    if (keys.has(networksKey)) return renewAll();
    for (const id of asked) renewAsked(id);
    if (keys.has(certificatesKey)) renewCertificates();
    const touched = new Set<number>();
    for (const key of services) renewService(key, touched);
    for (const shard of touched) renewShard(shard);
  });

  const clusterSet = () => properties.get(clusterSetProperty)?.spec?.value ?? '';

  /** Members of other networks whose roots are known. */
  function trusted(): { readonly id: string; readonly domain: string; readonly roots: readonly string[] }[] {
    if (clusterSet() === '') return [];
    return [...clusterset.networks().clusters]
      .map(([id, { trustRoots }]) => ({
        id,
        domain: memberDomain(id, clusterSet()),
        roots: trustRoots.filter(isCertificate),
      }))
      .filter(({ roots }) => roots.length > 0)
      .sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  function renewAll(): void {
    const { clusters } = clusterset.networks();
    if (clusters.size > 0 && clusterSet() !== '') authority.start();
    const trust = trusted();
    members = { own: cluster, clusterSet: clusterSet(), callers: trust.map(({ id }) => id) };
    renewCertificates();
    for (const key of new Set([...served.keys(), ...exports.keys()])) renewService(key, new Set());
    for (const shard of shards.keys()) renewShard(shard);
    replaceSafely(views.gateway, 'callers', () => trust.map(callersTrust), log);
    replaceSafely(views.gateway, 'gateway', ownGateway, log);
    renewNear();
  }

  function ownGateway(): readonly XdsResource[] {
    if (authority.signing === undefined) return [];
    return gatewayResources({ ...members, port: options.port, address: options.gatewayAddress });
  }

  /** The ways to other clusters: without a certificate to show there are none. */
  function renewNear(): void {
    const { clusters } = clusterset.networks();
    const ownDomain = memberDomain(cluster, clusterSet());
    const next = new Map<string, number>();
    for (const trust of trusted()) {
      const { gateways = [], listenerPort } = clusters.get(trust.id) ?? {};
      if (listenerPort === undefined || gateways.length === 0 || authority.signing === undefined) continue;
      next.set(trust.id, listenerPort);
      const remote = { id: trust.id, gateways, listenerPort, ownDomain };
      const make = () => [gatewayTrust(trust), ...nearSideResources(remote, options.address)];
      replaceSafely(views.sidecar, `gateway ${trust.id}`, make, log);
    }
    const gone = [...near.keys()].filter((id) => !next.has(id));
    near = next;
    for (const id of gone) views.sidecar.replace(`gateway ${id}`, []);
    for (const id of new Set([...gone, ...next.keys()])) renewAsked(id);
    replaceSafely(views.sidecar, 'gateways health', () => nearHealthResources(next.keys(), options.address), log);
  }

  function renewAsked(id: string): void {
    const listenerPort = near.get(id);
    const byName = listenerPort === undefined ? [] : named.of(id);
    const make = () =>
      listenerPort === undefined ? [] : namedWaysResources({ id, listenerPort }, byName, options.address);
    beyond.look(id, byName);
    replaceSafely(views.sidecar, `gateway names ${id}`, make, log);
    const overUdp = () => (listenerPort === undefined ? [] : udpNearSideResources(id, udp.of(id), options.address));
    replaceSafely(views.sidecar, `gateway udp ${id}`, overUdp, log);
  }

  function renewCertificates(): void {
    const { signing } = authority;
    const had = views.gateway.get('secret', gatewaySecret) !== undefined;
    if (signing === undefined || clusterSet() === '') return;
    const domain = memberDomain(cluster, clusterSet());
    const own = () => [certificateResource(gatewaySecret, gatewayCertificates.of(gatewayIdentity(domain), signing))];
    replaceSafely(views.gateway, 'certificate', own, log);
    for (const { proxy, set } of views.proxies()) giveCertificate(proxy, set);
    if (had) return;
    replaceSafely(views.gateway, 'gateway', ownGateway, log);
    renewNear();
  }

  function giveCertificate(proxy: ProxyIdentity, set: ResourceSet): void {
    const { signing } = authority;
    if (signing === undefined || clusterSet() === '') return;
    const uri = nodeIdentity(memberDomain(cluster, clusterSet()), proxy.name);
    replaceSafely(
      set,
      'gateway certificate',
      () => [certificateResource(nodeSecret, nodeCertificates.of(uri, signing))],
      log,
    );
  }

  function portsOf(key: string): ServedPort[] {
    const serviceExport = exports.get(key);
    const access = serviceExport && accessOf(serviceExport);
    const service = clusterset.service(key);
    const ownNames = services.get(key);
    if (access === undefined || service === undefined || ownNames === undefined || members.callers.length === 0)
      return [];
    const { namespace, name, ips, isHeadless } = service;
    const host = `${name}.${namespace}.svc.${clusterset.domain()}`;
    // A port of other clusters alone has no name here.
    const ownPort = (protocol: CarriedProtocol, port: number) => {
      const slicePort = ownNames.get(portKey(protocol, port));
      return slicePort === undefined ? [] : [{ port, slicePort, ...(protocol === 'UDP' ? { isUdp: true } : {}) }];
    };
    const ports = [
      ...service.ports.flatMap(({ port }) => ownPort('TCP', port)),
      ...service.udpPorts.flatMap((port) => ownPort('UDP', port)),
    ];
    const { exportTo, namespaces } = callersOf(access, key, clusterset.callers());
    const exported = { namespace, service: name, addresses: isHeadless ? [] : ips, host, exportTo, namespaces };
    return servedPortsOf({ exported, isHeadless, ports, slices: slicesOf(slices, key), cluster });
  }

  function renewService(key: string, touched: Set<number>): void {
    const before = served.get(key) ?? [];
    const ports = portsOf(key);
    if (ports.length === 0) served.delete(key);
    else served.set(key, ports);
    const unchanged = new Set(before.map(chainsKey)).intersection(new Set(ports.map(chainsKey)));
    for (const port of before) {
      const shard = shardOf(portName(port.exported));
      if (unchanged.has(chainsKey(port))) continue;
      shards.get(shard)?.delete(portName(port.exported));
      touched.add(shard);
    }
    for (const port of ports) {
      const shard = shardOf(portName(port.exported));
      const inShard = shards.get(shard) ?? new Map<string, ServedPort>();
      shards.set(shard, inShard);
      inShard.set(portName(port.exported), port);
      if (!unchanged.has(chainsKey(port))) touched.add(shard);
    }
    const make = () =>
      ports.flatMap(({ exported, endpoints }) => [
        ...portResources(exported, { authorities: authoritiesOf(exported), members }),
        portEndpoints(exported, endpoints),
      ]);
    replaceSafely(views.gateway, `service ${key}`, make, log);
  }

  function renewShard(shard: number): void {
    const ports = [...(shards.get(shard)?.values() ?? [])];
    const make = () =>
      shardResource(
        shard,
        ports.map(({ exported }) => portChains(exported, { authorities: authoritiesOf(exported), members })),
        [],
      );
    replaceSafely(views.gateway, `shard ${shard}`, make, log);
    if (ports.length === 0) shards.delete(shard);
  }

  views.onProxy(giveCertificate);
  const again = () => {
    batch.add(certificatesKey);
    timer = world.timers.after(Math.min(renewMsMax, lifeMs / 10), again);
  };
  let timer = world.timers.after(Math.min(renewMsMax, lifeMs / 10), again);
  const offs = [
    exports.on((key) => batch.add(key)),
    services.on((key) => {
      if (exports.get(key) !== undefined) batch.add(key);
    }),
    properties.on(() => batch.add(networksKey)),
    clusterset.onService((key) => batch.add(key)),
    clusterset.onOptions(() => batch.add(networksKey)),
    clusterset.onCallers((namespaces) => {
      for (const key of exports.keys()) if (namespaces?.has(key.slice(0, key.indexOf('/'))) ?? true) batch.add(key);
    }),
    onServiceSlices(slices, (key) => {
      if (exports.get(key) !== undefined) batch.add(key);
    }),
  ];
  const source = sourceOf([exports, services, properties] as unknown as Informer<never>[], () => {
    batch.stop();
    authority.stop();
    timer.cancel();
    for (const off of offs) off();
  });
  const ways = (): GatewayWay[] => {
    const { signing } = authority;
    if (signing === undefined) return [];
    const { clusters } = clusterset.networks();
    const ownDomain = memberDomain(cluster, clusterSet());
    const own = nodeCertificates.of(nodeIdentity(ownDomain, checkerName), signing);
    return trusted()
      .filter(({ id }) => near.has(id))
      .map(({ id, domain, roots }) => ({
        cluster: id,
        targets: (clusters.get(id)?.gateways ?? []).map(({ address, port }) => ({
          ...{ address, port, roots, own, path: healthPath, serverName: ownDomain },
          ...{ identity: gatewayIdentity(domain), timeoutMs: gatewayProbeMs },
        })),
      }));
  };
  const endOf = (pem: string | undefined) => (pem === undefined ? undefined : certificateFacts(pem).notAfterMs);
  const ownCertificate = () => {
    const { signing } = authority;
    if (signing === undefined || clusterSet() === '') return undefined;
    return gatewayCertificates.of(gatewayIdentity(memberDomain(cluster, clusterSet())), signing).certificate;
  };
  return {
    ...source,
    ways,
    certificateEndMs: () => endOf(ownCertificate()),
    rootEndMs: () => endOf(authority.signing?.certificate),
    whenSynced: async () => {
      await Promise.all([source.whenSynced(), clusterset.whenSynced(), slices.whenSynced()]);
      batch.add(networksKey);
      batch.flush();
    },
  };
}

/** What the chains of a port are made of: an endpoint that changes changes none. */
function chainsKey({ exported }: ServedPort): string {
  return JSON.stringify([exported, [...(exported.namespaces ?? [])]]);
}

/** Name of the proxy in the certificate with which ways are tried. */
const checkerName = 'xds';
const networksKey = '';
const certificatesKey = ' certificates';
