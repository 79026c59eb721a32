// The routes of an ingress for connections from peers: the backends of each SNI, and
// whose clients may come under it. Pure. The ingress does not open the TLS: the workload shows its certificate and
// looks at the client's.

import {
  type EndpointSlice,
  importedServiceNameLabel,
  isReady,
  serviceNameLabel,
} from '../../kube/objects/endpoint-slice.ts';
import type { Service, ServicePort } from '../../kube/objects/service.ts';
import { importedPortName } from '../kinds/imported-service.ts';
import type { Peer } from '../kinds/peer.ts';
import {
  exportsService,
  type MeshDefaults,
  missingPort,
  type PeerExport,
  sharedPort,
  sharedServiceOf,
} from '../kinds/peer-export.ts';
import { type SharedEndpoint, validateSharedService } from '../kinds/shared-service.ts';

export interface RouteFacts {
  readonly exports: readonly PeerExport[];
  readonly services: readonly Service[];
  /** Services of the clusterset. */
  readonly imports: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly peers: readonly Peer[];
  readonly mesh: MeshDefaults;
}

export interface IngressRoute {
  readonly sni: string;
  /** `namespace/name`, of the PeerExport too. */
  readonly service: string;
  readonly exportedBy: string;
  /** Name that the workload's certificate has. */
  readonly san: string;
  readonly protocols: readonly string[];
  /** Port of the Service: the first over TCP, because a service has one SNI and TLS uses TCP. */
  readonly port: number;
  /** Ready endpoints behind that port. */
  readonly backends: readonly SharedEndpoint[];
  readonly clients: readonly RouteClient[];
}

/** Client certificates that workloads accept: those issued under this peer's roots, in its own trust domain. */
interface RouteClient {
  readonly peer: string;
  readonly trustDomain: string;
}

export interface RoutePlan {
  /** In the order of their SNIs. */
  readonly routes: readonly IngressRoute[];
  readonly leftOut: readonly { readonly what: string; readonly why: string }[];
}

const anyName = { allowedDomains: ['*'], ownZones: [] };

export function planRoutes(facts: RouteFacts): RoutePlan {
  const routes = new Map<string, IngressRoute>();
  const leftOut: { what: string; why: string }[] = [];
  const peers = new Map(facts.peers.map((peer) => [peer.metadata.name, peer]));
  const own = new Set(facts.services.map(keyOf));
  const services = [...facts.services, ...facts.imports.filter((one) => !own.has(keyOf(one)))];
  for (const peerExport of [...facts.exports].sort(byAge)) {
    const exportedBy = keyOf(peerExport);
    const { clients, missing } = clientsOf(peerExport, peers);
    for (const peer of missing)
      leftOut.push({ what: `peer ${peer} of PeerExport ${exportedBy}`, why: 'there is no such Peer' });
    for (const service of services) {
      if (service.metadata.namespace !== peerExport.metadata.namespace || !exportsService(peerExport, service))
        continue;
      const wanted = routeOf(peerExport, service, facts, clients);
      const present = 'route' in wanted ? routes.get(wanted.route.sni) : undefined;
      const why = 'why' in wanted ? wanted.why : whyNotBeside(present, wanted.route);
      if (why !== '') leftOut.push({ what: `Service ${keyOf(service)} of PeerExport ${exportedBy}`, why });
      else if ('route' in wanted && clients.length > 0) routes.set(wanted.route.sni, joined(present, wanted.route));
    }
  }
  return { routes: [...routes.values()].sort((one, other) => (one.sni < other.sni ? -1 : 1)), leftOut };
}

function routeOf(
  peerExport: PeerExport,
  service: Service,
  { mesh, slices, imports }: RouteFacts,
  clients: readonly RouteClient[],
): { readonly route: IngressRoute } | { readonly why: string } {
  const shared = sharedServiceOf(peerExport, service, mesh);
  const wrong = validateSharedService(shared, anyName);
  if (wrong.length > 0) return { why: wrong.map(({ field, message }) => `${field}: ${message}`).join('; ') };
  const port = sharedPort(peerExport, service);
  if (port === undefined) return { why: missingPort(peerExport, service) || 'it has no port that goes over TCP' };
  const { id, sni = id, san, protocols } = shared;
  const route = {
    sni: sni.toLowerCase(),
    service: keyOf(service),
    exportedBy: keyOf(peerExport),
    san,
    protocols,
    port: port.port,
    backends: backendsOf(
      service,
      port,
      slices,
      importedPortName(
        port,
        imports.find((one) => keyOf(one) === keyOf(service)),
      ),
    ),
    clients,
  };
  return { route };
}

/** Backends in this cluster, and in all clusters behind the import. */
function backendsOf(
  service: Service,
  port: ServicePort,
  slices: readonly EndpointSlice[],
  importedName: string | undefined,
): SharedEndpoint[] {
  const { name, namespace } = service.metadata;
  const backends = new Map<string, SharedEndpoint>();
  for (const { metadata, addressType, endpoints, ports = [] } of slices) {
    if (metadata.namespace !== namespace) continue;
    const portNames = [
      ...(metadata.labels?.[serviceNameLabel] === name ? [port.name ?? ''] : []),
      ...(metadata.labels?.[importedServiceNameLabel] === name && importedName !== undefined ? [importedName] : []),
    ];
    const target = ports.find((one) => portNames.includes(one.name ?? '') && (one.protocol ?? 'TCP') === 'TCP')?.port;
    if (addressType === 'FQDN' || target === undefined) continue;
    for (const address of (endpoints ?? []).filter(isReady).flatMap(({ addresses }) => addresses ?? []))
      backends.set(`${address} ${target}`, { address, port: target });
  }
  return [...backends.keys()].sort().map((key) => backends.get(key)!);
}

function clientsOf(peerExport: PeerExport, peers: ReadonlyMap<string, Peer>) {
  const clients: RouteClient[] = [];
  const missing: string[] = [];
  for (const name of peerExport.spec.peers) {
    const peer = peers.get(name);
    if (peer === undefined) missing.push(name);
    else if (!peer.spec.suspended) clients.push({ peer: name, trustDomain: peer.spec.trust.domain });
  }
  return { clients, missing };
}

// An ingress sees the SNI and nothing else: it cannot lead two peers to two places under one.
function whyNotBeside(present: IngressRoute | undefined, route: IngressRoute): string {
  const isSame = present?.service === route.service && present.port === route.port;
  if (present === undefined || isSame) return '';
  return `SNI ${route.sni} leads to Service ${present.service} by PeerExport ${present.exportedBy}, which is older`;
}

function joined(present: IngressRoute | undefined, route: IngressRoute): IngressRoute {
  const known = present?.clients ?? [];
  const more = route.clients.filter(({ peer }) => !known.some((client) => client.peer === peer));
  return { ...(present ?? route), clients: [...known, ...more] };
}

function byAge({ metadata: one }: PeerExport, { metadata: other }: PeerExport): number {
  const [a, b] = [one.creationTimestamp ?? '', other.creationTimestamp ?? ''];
  if (a !== b) return a < b ? -1 : 1;
  return `${one.namespace}/${one.name}` < `${other.namespace}/${other.name}` ? -1 : 1;
}

function keyOf({ metadata }: { readonly metadata: { readonly name: string; readonly namespace?: string } }): string {
  return `${metadata.namespace}/${metadata.name}`;
}
