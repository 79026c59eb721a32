// `portolan peer routes`: what an ingress of this mesh needs for connections that come from peers.

import { errorText } from '../../base/log.ts';
import { isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { type ImportedService, importedServiceType, serviceOfImport } from '../../peering/kinds/imported-service.ts';
import { type Peer, peerType } from '../../peering/kinds/peer.ts';
import { type MeshDefaults, type PeerExport, peerExportType } from '../../peering/kinds/peer-export.ts';
import { meshCardName, meshDefaultsIn } from '../../peering/rules/peer-introduction.ts';
import { type IngressRoute, planRoutes, type RoutePlan } from '../../peering/rules/peer-route.ts';
import { notFoundError } from '../exit-codes.ts';
import { formatOutput, formatTable, type OutputFormat } from '../table.ts';
import type { PeerHome } from './add.ts';
import { endpointText, secretText } from './show.ts';

/** For the clients of one peer, or of all. */
export async function listRoutes(
  home: PeerHome,
  peer: string | undefined,
  format: OutputFormat,
): Promise<readonly string[]> {
  const { items: peers } = await home.client.list<Peer>(peerType, { namespace: home.namespace });
  if (peer !== undefined && !peers.some(({ metadata }) => metadata.name === peer))
    throw notFoundError(`peer ${peer}: no such Peer; portolan peer list shows all`);
  const plan = ofPeer(planRoutes({ ...(await exported(home)), peers, mesh: await meshOf(home) }), peer);
  const isForProgram = format === 'json' || format === 'yaml';
  return formatOutput(format, {
    value: isForProgram ? await withRoots(home, plan, peers) : plan,
    names: plan.routes.map(({ sni }) => sni),
    text: () => describe(plan),
  });
}

function ofPeer({ routes, leftOut }: RoutePlan, peer: string | undefined): RoutePlan {
  if (peer === undefined) return { routes, leftOut };
  return { routes: routes.filter(({ clients }) => clients.some((client) => client.peer === peer)), leftOut };
}

async function exported({ client }: PeerHome) {
  const all = async <T extends KubernetesObject>(type: ResourceType, namespace?: string) => {
    const items: T[] = [];
    for await (const page of client.listPaged<T>(type, { namespace })) items.push(...page.items);
    return items;
  };
  const exports = await all<PeerExport>(peerExportType);
  const services: Service[] = [];
  const slices: EndpointSlice[] = [];
  const imports: Service[] = [];
  for (const namespace of new Set(exports.map(({ metadata }) => metadata.namespace))) {
    services.push(...(await all<Service>(serviceType, namespace)));
    slices.push(...(await all<EndpointSlice>(endpointSliceType, namespace)));
    // A home without a clusterset may not have the kind.
    const imported = await all<ImportedService>(importedServiceType, namespace).catch(unlessAbsent);
    imports.push(...imported.map(serviceOfImport));
  }
  return { exports, services, imports, slices };
}

function unlessAbsent(error: unknown): [] {
  if (isNotFound(error) || isForbidden(error)) return [];
  throw error;
}

async function meshOf({ client, namespace }: PeerHome): Promise<MeshDefaults> {
  const { data } = await client.get<ConfigMap>(configMapType, { namespace, name: meshCardName });
  const mesh = meshDefaultsIn(data ?? {});
  if (mesh !== undefined) return mesh;
  throw new Error(
    `ConfigMap ${namespace}/${meshCardName} does not say how services are named: restart portolan peering`,
  );
}

/** For a program: with the roots by which each peer's clients are known. */
async function withRoots(home: PeerHome, plan: RoutePlan, peers: readonly Peer[]) {
  const leftOut = [...plan.leftOut];
  const roots = new Map<string, string>();
  for (const { metadata, spec } of peers) {
    const { bundle, bundleSecret } = spec.trust;
    const text = bundle ?? (await secretText(home, bundleSecret?.name ?? '', 'ca.crt').catch(errorText));
    if (text.includes('BEGIN CERTIFICATE')) roots.set(metadata.name, text);
    else leftOut.push({ what: `roots of peer ${metadata.name}`, why: text });
  }
  const routes = plan.routes.map((route) => ({
    ...route,
    clients: route.clients.map((client) => ({ ...client, roots: roots.get(client.peer) })),
  }));
  return { routes, leftOut };
}

function describe({ routes, leftOut }: RoutePlan): string[] {
  const lines = leftOut.map(({ what, why }) => `left out: ${what}: ${why}`);
  if (routes.length === 0) return ['nothing is shared with peers', ...lines];
  return [...formatTable(['SNI', 'SERVICE', 'PORT', 'BACKENDS', 'SAN', 'CLIENTS'], routes.map(rowOf)), ...lines];
}

function rowOf({ sni, service, port, backends, san, clients }: IngressRoute): string[] {
  const ways = backends.map(endpointText).join(',') || '-';
  return [sni, service, String(port), ways, san, clients.map((one) => `${one.peer}(${one.trustDomain})`).join(',')];
}
