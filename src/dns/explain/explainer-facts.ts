// The facts of the service behind a name, for explanations: the object, its slices, shards
// or peer, and why something is not in the answer. For people, not for the path.

import { formatAddress, parseAddress } from '../../base/net/ip.ts';
import type { Clock } from '../../base/world.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { OwnerFacts, SliceFacts } from '../../catalog/facts/facts.ts';
import type { FederationTable } from '../../catalog/federation/federation-table.ts';
import type { LeftOut } from '../../catalog/names/owner-names.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import type { ExternalTable } from '../../catalog/outside/external-table.ts';
import type { Claimant, PeerTable } from '../../catalog/outside/peer-table.ts';
import type { RecordSource } from './explanation.ts';

export interface FactSources {
  readonly clock: Clock;
  readonly catalog?: Catalog;
  readonly federations?: readonly FederationTable[];
  readonly peerTable?: PeerTable;
  readonly externalTable?: ExternalTable;
}

interface ShardFacts {
  readonly source: RecordSource;
  readonly cluster: string;
  readonly addresses: readonly string[];
}

export interface Facts {
  readonly owner: RecordSource;
  /** Its address stands for the endpoints of all its slices. */
  readonly isVirtual: boolean;
  readonly slices: readonly { readonly source: RecordSource; readonly facts: SliceFacts }[];
  readonly shards: readonly ShardFacts[];
  readonly leftOut: readonly LeftOut[];
  /** Why there is no such name, or no record of that type; empty if what was left out says it all. */
  readonly whyNot: (isNameMissing: boolean, type: string) => string;
  /** Shards are in the order this asks for. */
  readonly policy?: string;
}

/** Facts about a name from services of peers. */
export function peerFacts({ peerTable, clock }: FactSources, name: string): Facts | undefined {
  const found = peerTable && explainPeerName(peerTable, name, clock);
  const whyNot = (_isNameMissing: boolean, type: string) =>
    found?.leftOut.length === 0 ? `it has no record of type ${type}` : '';
  return found && { isVirtual: false, slices: [], shards: [], whyNot, ...found };
}

/** Facts about a name from external services. */
function externalFacts({ externalTable }: FactSources, name: string): Facts | undefined {
  const found = externalTable?.report(name);
  if (found === undefined) return undefined;
  const owner: RecordSource = { kind: 'MeshExternalService', name: found.holders.join(', ') };
  const whyNot = (_isNameMissing: boolean, type: string) => `it has no record of type ${type}`;
  return { owner, isVirtual: false, slices: [], shards: [], leftOut: [], whyNot };
}

/** The service a name belongs to: the two labels before `svc` in our zones. */
export function factsBehind(sources: FactSources, name: string): Facts | undefined {
  const { catalog, clock } = sources;
  for (const federation of sources.federations ?? []) {
    const facts = factsOfShards(federation, name, clock);
    if (facts) return facts;
  }
  const external = externalFacts(sources, name);
  if (external) return external;
  const peer = peerFacts(sources, withoutPorts(name));
  if (peer) return peer;
  for (const zone of catalog?.zones ?? []) {
    const suffix = `.svc.${zone.name}`;
    if (name.endsWith(suffix)) return factsOfOwner(catalog!, zone, name.slice(0, -suffix.length).split('.'), clock);
  }
  return undefined;
}

function factsOfOwner(catalog: Catalog, zone: Zone, labels: readonly string[], clock: Clock): Facts | undefined {
  const [service, namespace] = labels.slice(-2);
  if (!namespace || !service) return undefined;
  const isOfServices = zone.source === 'services';
  const isTransparent = isOfServices && catalog.isTransparent(`${namespace}/${service}`);
  const kind = isOfServices && !isTransparent ? 'Service' : 'ServiceImport';
  const ownerKey = `${isOfServices ? 's' : 'i'}/${namespace}/${service}`;
  const { owner, slices } = catalog.factsOf(isTransparent ? `i/${namespace}/${service}` : ownerKey);
  const ageMs = (seenMs: number) => Math.max(0, clock.monotonicMs() - seenMs);
  const what = `${kind} ${namespace}/${service}`;
  const missing = { what: `${labels.join('.')}.svc.${zone.name}`, why: `there is no ${what}` };
  return {
    owner: {
      kind,
      name: `${namespace}/${service}`,
      ...(owner.isPresent ? { revision: owner.resourceVersion, ageMs: ageMs(owner.seenMs) } : {}),
    },
    isVirtual: owner.ips.length > 0,
    slices: slices.map((facts) => ({
      facts,
      source: {
        kind: 'EndpointSlice',
        name: `${namespace}/${facts.name}`,
        ...(facts.cluster ? { cluster: facts.cluster } : {}),
        revision: facts.resourceVersion,
        ageMs: ageMs(facts.seenMs),
      },
    })),
    shards: [],
    leftOut: [
      ...(owner.isPresent ? [] : [missing]),
      ...ledElsewhere(catalog, ownerKey, isTransparent),
      ...catalog.namesOf(ownerKey).leftOut,
    ],
    whyNot: (isNameMissing, type) => {
      if (!owner.isPresent) return '';
      const front = labels.slice(0, -2);
      const isOff = zone.source === 'imports' && !catalog.hasClusterNames;
      const reason =
        (isOff ? whyNoCluster(slices, front) : undefined) ??
        (isNameMissing ? whyNoName(owner, slices, front) : undefined);
      return `${what} ${reason ?? `has no record of type ${type} here`}`;
    },
  };
}

/** The cluster's own Service, where a policy leads its name to the clusterset. */
function ledElsewhere(catalog: Catalog, ownerKey: string, isTransparent: boolean): LeftOut[] {
  if (!isTransparent || !catalog.facts.ownerOf(ownerKey).isPresent) return [];
  const why = 'a ServiceImportPolicy of this cluster leads its name to the clusterset (importAs: Transparent)';
  return [{ what: `Service ${ownerKey.slice(2)}`, why }];
}

/** Whether the cluster's name is asked for, with ports in front of it or not: `front` is what stands before the service. */
function whyNoCluster(slices: readonly SliceFacts[], front: readonly string[]): string | undefined {
  const cluster = front.at(-1);
  const isPortsOnly = front.slice(0, -1).every((label) => label.startsWith('_'));
  if (!isPortsOnly || !slices.some((slice) => slice.cluster === cluster)) return undefined;
  return `is in cluster ${cluster}, but names of clusters are switched off; --cluster-names or the clusterset switches them on`;
}

function whyNoName(owner: OwnerFacts, slices: readonly SliceFacts[], front: readonly string[]): string {
  const ready = slices.flatMap(({ endpoints }) => endpoints).filter(({ isReady }) => isReady).length;
  const isHeadless = owner.ips.length === 0 && owner.externalName === '';
  if (isHeadless && ready === 0)
    return `has no address of its own and no ready endpoint in ${slices.length} EndpointSlices`;
  return front.length === 0 ? 'has no name of its own here' : 'has no such host, port or cluster';
}

function factsOfShards(federation: FederationTable, name: string, clock: Clock): Facts | undefined {
  const suffix = `.svc.${federation.suffix}`;
  if (!name.endsWith(suffix)) return undefined;
  const [service, namespace, federationName] = name.slice(0, -suffix.length).split('.').slice(-3);
  if (!service || !namespace || !federationName) return undefined;
  const key = `/${federationName}/${namespace}/${service}`;
  const ageMs = (seenMs: number) => Math.max(0, clock.monotonicMs() - seenMs);
  const seenOf = (cluster: string) => {
    const seen = federation.seenOf({ federation: federationName, namespace, service, cluster });
    return seen ? { revision: seen.revision, ageMs: ageMs(seen.seenMs) } : {};
  };
  const shards = federation.shardsOf(key);
  const ready = shards.filter((shard) => shard.isReady);
  return {
    owner: { kind: 'zone', name: federation.zone.name },
    isVirtual: false,
    slices: [],
    shards: ready.map((shard) => ({
      source: { kind: 'shard', name: `${key}/${shard.cluster}`, cluster: shard.cluster, ...seenOf(shard.cluster) },
      cluster: shard.cluster,
      addresses: [...shard.clusterIPs, ...shard.externalIPs].map(usualSpelling),
    })),
    leftOut: federation.leftOutOf(key),
    whyNot: (isNameMissing, type) => {
      if (shards.length === 0) return '';
      return isNameMissing
        ? `${namespace}/${service} has no such cluster or port`
        : `${namespace}/${service} has no record of type ${type} for this cluster`;
    },
    policy: federation.policyOf(federationName),
  };
}

function usualSpelling(address: string): string {
  const bytes = parseAddress(address);
  return bytes ? formatAddress(bytes) : address;
}

interface ExplainedPeerName {
  readonly owner: RecordSource;
  readonly leftOut: readonly { readonly what: string; readonly why: string }[];
}

/** Undefined for a name that no peer has anything to do with. */
function explainPeerName(peers: PeerTable, name: string, clock: Clock): ExplainedPeerName | undefined {
  const report = peers.report(name);
  const owner: RecordSource = { kind: 'zone', name: peers.zone.name };
  if (report === undefined) {
    if (!name.endsWith(`.${peers.zone.name}`)) return undefined;
    return { owner, leftOut: [{ what: name, why: 'no PeerService that was taken has this name' }] };
  }
  const { holder, others, why } = report;
  const whyNot = holder === undefined ? why : `PeerService ${holder.key} of peer ${holder.facts.peer} has this name`;
  const leftOut = others.map(({ key, facts }) => ({ what: `PeerService ${key} of peer ${facts.peer}`, why: whyNot }));
  if (holder === undefined) return { owner, leftOut };
  if (holder.facts.ips.length > 0) return { owner: sourceOf(holder, clock), leftOut };
  const noAddress = { what: `addresses of ${name}`, why: `PeerService ${holder.key} has no virtual address yet` };
  return { owner: sourceOf(holder, clock), leftOut: [noAddress, ...leftOut] };
}

function sourceOf({ key, facts }: Claimant, clock: Clock): RecordSource {
  const { peer, state, since, resourceVersion: revision, seenMs } = facts;
  return {
    kind: 'PeerService',
    name: key,
    peer,
    state: since === '' ? state : `${state} since ${since}`,
    revision,
    ageMs: Math.max(0, clock.monotonicMs() - seenMs),
  };
}

/** `_http._tcp.db.example` belongs to `db.example`. */
function withoutPorts(name: string): string {
  return name.replace(/^(_[^.]*\.)+/, '');
}
