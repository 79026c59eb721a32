// The facts of a Service, a ServiceImport and an EndpointSlice, packed into bytes: a hundred thousand
// services with their slices take tens of megabytes instead of hundreds. Pure.

import type { ByteReader, ByteWriter } from '../../base/dns/bytes.ts';
import { parseAddress, parseIpv4Number } from '../../base/net/ip.ts';
import { isAskedByName, isServingRemotely, remoteFamily } from '../../clusterset/rules/networks/remote-endpoint.ts';
import { virtualAddressesLabel } from '../../clusterset/rules/networks/virtual-endpoints.ts';
import { importedFromAnnotation } from '../../clusterset/rules/routing/import-as.ts';
import { routingAnnotation } from '../../clusterset/rules/routing/routing.ts';
import { type Endpoint, type EndpointSlice, isReady } from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import { listOf, type PortFacts, packPorts, portOf, portsOf, repeat, unpackPorts } from './ports.ts';
import type { SliceShapes } from './slice-shapes.ts';

export interface EndpointFacts {
  /** Empty behind a gateway, or a virtual one. */
  readonly address: Uint8Array;
  /** Empty if it has none of its own. */
  readonly hostname: string;
  readonly isReady: boolean;
  /** Empty if unknown; of imported slices, and of own ones where traffic is carried. */
  readonly zone: string;
  /** Set for an endpoint of another network, which has no address of its own here: the family that it has there. */
  readonly behindGateway?: 'IPv4' | 'IPv6';
  /** Its gateway has to be asked for the service by name. */
  readonly isAskedByName?: boolean;
}

/** When and in which form the fact was seen: what `explain` says of a record. */
export interface Seen {
  readonly resourceVersion: string;
  /** Monotonic. */
  readonly seenMs: number;
}

export interface SliceFacts extends Seen {
  /** Name of the Service or ServiceImport it stands behind. */
  readonly service: string;
  readonly isImported: boolean;
  /** Empty for the cluster's own slices. */
  readonly cluster: string;
  readonly ports: readonly PortFacts[];
  readonly endpoints: readonly EndpointFacts[];
}

/** A slice under its own name, for those who ask where a record comes from. */
export interface NamedSlice extends SliceFacts {
  readonly name: string;
}

type OwnerKind = 'ClusterIP' | 'Headless' | 'ExternalName';

/** Facts of an import that only traffic needs; names do without. */
export interface TrafficFacts {
  /** 0 without session affinity. */
  readonly affinitySeconds: number;
  readonly isNodeLocalOnly: boolean;
  /** By index of the port; empty if it has none. */
  readonly appProtocols: readonly string[];
  /** `namespace/name` that the service has in the clusterset; empty if the import has the same. */
  readonly importedFrom: string;
  /** Values that make no sense and were left out, for people; few. */
  readonly problems: readonly string[];
}

/** A Service or a ServiceImport. */
export interface OwnerFacts extends Seen {
  /** False while only slices of it have been seen. */
  readonly isPresent: boolean;
  readonly kind: OwnerKind;
  readonly ips: readonly Uint8Array[];
  readonly ports: readonly PortFacts[];
  readonly externalName: string;
  /** From an import; empty if it has none. */
  readonly trafficDistribution: string;
  /** From an import, as its agent wrote it (routing.ts); empty if it has none. */
  readonly routing: string;
  /** Names of its slices, in the same namespace, each once. */
  readonly slices: readonly string[];
  /** Only of imports, and only where the index holds them. */
  readonly traffic?: TrafficFacts;
}

export const absentOwner: OwnerFacts = {
  isPresent: false,
  kind: 'ClusterIP',
  ips: [],
  ports: [],
  externalName: '',
  trafficDistribution: '',
  routing: '',
  slices: [],
  resourceVersion: '',
  seenMs: 0,
};

/** The part of a ServiceImport that names are made of. */
export interface ImportLike {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>> | null;
  };
  readonly spec?: {
    readonly type?: string;
    readonly ips?: readonly string[];
    readonly ports?: readonly { name?: string; protocol?: string; port: number; appProtocol?: string }[];
    readonly trafficDistribution?: string;
    readonly internalTrafficPolicy?: string;
    readonly sessionAffinity?: string;
    readonly sessionAffinityConfig?: { readonly clientIP?: { readonly timeoutSeconds?: number } };
  };
}

export function factsOfImport(object: ImportLike, seenMs: number): Omit<OwnerFacts, 'slices'> {
  const { spec } = object;
  return {
    isPresent: true,
    kind: spec?.type === 'Headless' ? 'Headless' : 'ClusterIP',
    ips: addressesOf(spec?.ips),
    ports: portsOf(spec?.ports),
    externalName: '',
    trafficDistribution: spec?.trafficDistribution ?? '',
    routing: routingOf(object.metadata.annotations?.[routingAnnotation]),
    resourceVersion: object.metadata.resourceVersion ?? '',
    seenMs,
  };
}

function routingOf(text: unknown): string {
  return typeof text === 'string' && text.length <= routingLengthMax ? text : '';
}

/** More clusters than any set has. */
const routingLengthMax = 16_000;

const defaultAffinitySeconds = 10_800;
/** As Kubernetes bounds it. */
const affinitySecondsMax = 86_400;
const problemsMax = 5;
/** Two names and the slash between them. */
const keyLengthMax = 127;

export function trafficOfImport({ metadata, spec }: ImportLike): TrafficFacts {
  const importedFrom: unknown = metadata.annotations?.[importedFromAnnotation];
  const isAffine = spec?.sessionAffinity === 'ClientIP';
  const wrongIps = listOf(spec?.ips).filter((text) => typeof text !== 'string' || parseAddress(text) === undefined);
  const wrongPorts = listOf(spec?.ports).filter((port) => portOf(port) === undefined);
  return {
    affinitySeconds: isAffine ? affinitySecondsOf(spec.sessionAffinityConfig?.clientIP?.timeoutSeconds) : 0,
    isNodeLocalOnly: spec?.internalTrafficPolicy === 'Local',
    appProtocols: listOf(spec?.ports)
      .filter((port) => portOf(port) !== undefined)
      .map(({ appProtocol }) => (typeof appProtocol === 'string' ? appProtocol : '')),
    importedFrom: typeof importedFrom === 'string' && importedFrom.length <= keyLengthMax ? importedFrom : '',
    problems: [
      ...wrongIps.map((ip) => `${quoted(ip)} is no IP address; delete the import and its agent writes it again`),
      ...wrongPorts.map((port) => `port ${quoted(port)}: invalid`),
    ].slice(0, problemsMax),
  };
}

function affinitySecondsOf(seconds: unknown): number {
  if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 1) return defaultAffinitySeconds;
  return Math.min(seconds, affinitySecondsMax);
}

function quoted(value: unknown): string {
  return (JSON.stringify(value) ?? 'undefined').slice(0, 80);
}

export function factsOfService(object: Service, seenMs: number): Omit<OwnerFacts, 'slices'> {
  const { spec } = object;
  const ips = spec?.clusterIPs ?? (spec?.clusterIP ? [spec.clusterIP] : []);
  return {
    isPresent: true,
    kind: spec?.type === 'ExternalName' ? 'ExternalName' : spec?.clusterIP === 'None' ? 'Headless' : 'ClusterIP',
    ips: addressesOf(ips),
    ports: portsOf(spec?.ports),
    externalName: spec?.externalName ?? '',
    trafficDistribution: '',
    routing: '',
    resourceVersion: object.metadata.resourceVersion ?? '',
    seenMs,
  };
}

/** The fields of a Service that decide where its traffic goes, read as those of an import are. */
export function trafficOfService({ metadata, spec }: Service): Pick<OwnerFacts, 'traffic' | 'trafficDistribution'> {
  const { sessionAffinity, sessionAffinityConfig, internalTrafficPolicy, ports } = spec ?? {};
  const traffic = trafficOfImport({
    metadata: { name: metadata.name },
    spec: { ports, sessionAffinity, sessionAffinityConfig, internalTrafficPolicy },
  });
  const trafficDistribution: unknown = spec?.trafficDistribution;
  return { traffic, trafficDistribution: typeof trafficDistribution === 'string' ? trafficDistribution : '' };
}

export interface SliceOwner {
  readonly service: string;
  readonly isImported: boolean;
  readonly cluster: string;
}

/** Leaves out what is no address: `None`, and what a foreign writer may have put there. */
export function addressesOf(texts: readonly string[] | undefined): Uint8Array[] {
  const addresses: Uint8Array[] = [];
  for (const text of listOf(texts)) {
    const address = typeof text === 'string' ? parseAddress(text) : undefined;
    if (address) addresses.push(address);
  }
  return addresses;
}

const kinds: readonly OwnerKind[] = ['ClusterIP', 'Headless', 'ExternalName'];

/** `service` is its name: those of its slices begin with it nearly always, and only the rest is kept. */
export function packOwner(writer: ByteWriter, owner: OwnerFacts, service: string): Uint8Array {
  writer
    .reset()
    .u8((owner.isPresent ? presentMark : 0) | (owner.routing === '' ? 0 : routingMark))
    .u8(kinds.indexOf(owner.kind));
  packSeen(writer, owner);
  writer.u8(owner.ips.length);
  for (const ip of owner.ips) writer.u8(ip.length).raw(ip);
  packPorts(writer, owner.ports);
  writer.text(owner.externalName).text(owner.trafficDistribution).u16(owner.slices.length);
  for (const slice of owner.slices) packBehind(writer, slice, service);
  if (owner.routing !== '') packRouting(writer, owner.routing);
  if (owner.traffic !== undefined) packTraffic(writer, owner.traffic);
  return writer.view();
}

const presentMark = 1;
const routingMark = 2;

function packRouting(writer: ByteWriter, routing: string): void {
  const bytes = Buffer.from(routing, 'utf8');
  writer.u16(bytes.length).raw(bytes);
}

function packTraffic(
  writer: ByteWriter,
  { affinitySeconds, isNodeLocalOnly, appProtocols, importedFrom, problems }: TrafficFacts,
): void {
  const isPlain = appProtocols.every((each) => each === '');
  writer
    .u32(affinitySeconds)
    .u8((isNodeLocalOnly ? 1 : 0) | (isPlain ? 0 : 2) | (importedFrom === '' ? 0 : 4))
    .u8(problems.length);
  for (const problem of problems) writer.text(problem);
  if (importedFrom !== '') writer.text(importedFrom);
  if (isPlain) return;
  writer.u16(appProtocols.length);
  for (const each of appProtocols) writer.text(each);
}

function unpackTraffic(reader: ByteReader): TrafficFacts {
  const affinitySeconds = reader.u32();
  const flags = reader.u8();
  const problems = repeat(reader.u8(), () => reader.text());
  const importedFrom = (flags & 4) === 0 ? '' : reader.text();
  const appProtocols = (flags & 2) === 0 ? [] : repeat(reader.u16(), () => reader.text());
  return { affinitySeconds, isNodeLocalOnly: (flags & 1) === 1, appProtocols, importedFrom, problems };
}

/** `hasTraffic` says whether it was packed with what traffic needs. */
export function unpackOwner(reader: ByteReader, service: string, hasTraffic: boolean): OwnerFacts {
  const marks = reader.u8();
  const isPresent = (marks & presentMark) !== 0;
  const kind = kinds[reader.u8()]!;
  const { resourceVersion, seenMs } = unpackSeen(reader);
  const ips = repeat(reader.u8(), () => reader.raw(reader.u8()));
  const ports = unpackPorts(reader);
  const externalName = reader.text();
  const trafficDistribution = reader.text();
  const slices = repeat(reader.u16(), () => unpackBehind(reader, service));
  const routing = (marks & routingMark) === 0 ? '' : Buffer.from(reader.raw(reader.u16())).toString('utf8');
  const traffic = hasTraffic && isPresent ? { traffic: unpackTraffic(reader) } : {};
  return {
    isPresent,
    kind,
    ips,
    ports,
    externalName,
    trafficDistribution,
    routing,
    slices,
    resourceVersion,
    seenMs,
    ...traffic,
  };
}

export interface SlicePacking {
  readonly writer: ByteWriter;
  readonly shapes: SliceShapes;
  /** Zones of imported endpoints always are. */
  readonly keepsOwnZones?: boolean;
}

/** Straight from the object: no list brings more of anything than of slices. */
export function packSlice(
  { writer, shapes, keepsOwnZones = false }: SlicePacking,
  slice: EndpointSlice,
  owner: SliceOwner,
  seenMs: number,
): Uint8Array {
  const { metadata, endpoints } = slice;
  const { service, isImported, cluster } = owner;
  const zones = isImported || keepsOwnZones ? zonesOf(listOf(endpoints)) : [];
  // The name of a slice begins with that of its service nearly always.
  packBehind(writer.reset(), service, metadata.name);
  const hasHostnames = (endpoints ?? []).some(({ hostname }) => (hostname ?? '') !== '');
  const isVirtual = isImported && metadata.labels?.[virtualAddressesLabel] === 'true';
  shapes.write(writer, { isImported, cluster, ports: portsOf(slice.ports), zones, hasHostnames, isVirtual });
  packSeen(writer, { resourceVersion: metadata.resourceVersion ?? '', seenMs });
  const countAt = writer.length;
  writer.u16(0);
  // Names stand for addresses: a slice of FQDNs has none to give, unless they stand for endpoints of another network.
  const isRemote = isImported && cluster !== '' && slice.addressType === 'FQDN';
  writer.setU16(countAt, isRemote ? packRemote(writer, slice, zones) : packEndpoints(writer, slice, zones));
  return writer.view();
}

/** Those that its endpoints lie in, each once: their endpoints name them by number. */
function zonesOf(endpoints: readonly Endpoint[]): string[] {
  const zones: string[] = [];
  for (const endpoint of endpoints) {
    const zone = endpoint?.zone;
    if (zone && zones.length < zonesMax && !zones.includes(zone)) zones.push(zone);
  }
  return zones;
}

const zonesMax = 250;

/** More of one slice are not kept: Kubernetes bounds a slice far below. */
const endpointsMax = 20_000;
const addressBytes: Readonly<Record<string, number>> = { IPv4: 4, IPv6: 16 };

function packEndpoints(writer: ByteWriter, slice: EndpointSlice, zones: readonly string[]): number {
  if (slice.addressType === 'FQDN') return 0;
  const bytes = addressBytes[slice.addressType];
  let count = 0;
  for (const endpoint of listOf(slice.endpoints)) {
    // All addresses of one endpoint are alike, and the first is the one to use, as Kubernetes says.
    const text = endpoint ? listOf(endpoint.addresses)[0] : undefined;
    if (typeof text !== 'string' || count >= endpointsMax) continue;
    if (!packAddress(writer, text, isReady(endpoint) ? 0x80 : 0, bytes)) continue;
    writer.text(endpoint.hostname ?? '');
    if (zones.length > 0) writer.u8(zones.indexOf(endpoint.zone ?? '') + 1);
    count += 1;
  }
  return count;
}

/** Endpoints behind a gateway: no address, and a mark for the family that they have there. */
function packRemote(writer: ByteWriter, slice: EndpointSlice, zones: readonly string[]): number {
  let count = 0;
  for (const endpoint of listOf(slice.endpoints)) {
    const address = endpoint ? listOf(endpoint.addresses)[0] : undefined;
    const family = remoteFamily(address);
    if (family === undefined || count >= endpointsMax) continue;
    const how = (family === 'IPv6' ? remoteIpv6 : 0) | (isAskedByName(address) ? remoteName : 0);
    writer.u8((isServingRemotely(endpoint) ? 0x80 : 0) | how).text('');
    if (zones.length > 0) writer.u8(zones.indexOf(endpoint.zone ?? '') + 1);
    count += 1;
  }
  return count;
}

const remoteIpv6 = 0x40;
const remoteName = 0x20;

/** Its length with a mark, and the address; nothing for a text that is no address of this length, if one is given. */
function packAddress(writer: ByteWriter, text: string, mark: number, bytes: number | undefined): boolean {
  const ipv4 = parseIpv4Number(text);
  if (ipv4 !== undefined) {
    if (bytes === 16) return false;
    writer.u8(mark | 4).u32(ipv4);
    return true;
  }
  const address = parseAddress(text);
  if (address === undefined || (bytes ?? address.length) !== address.length) return false;
  writer.u8(mark | address.length).raw(address);
  return true;
}

/** Reads what `packSlice` wrote for a slice of this name. */
export function unpackSlice(reader: ByteReader, shapes: SliceShapes, name: string): NamedSlice {
  const service = unpackBehind(reader, name);
  const { isImported, cluster, ports, zones, isVirtual } = shapes.read(reader);
  const { resourceVersion, seenMs } = unpackSeen(reader);
  const endpoints = repeat(reader.u16(), () => {
    const head = reader.u8();
    const address = reader.raw(head & 0x1f);
    const hostname = reader.text();
    const zone = zones.length === 0 ? '' : (zones[reader.u8() - 1] ?? '');
    const facts = { address, hostname, isReady: head >= 0x80, zone };
    if (address.length > 0 && !isVirtual) return facts;
    if (isVirtual) return { ...facts, behindGateway: address.length === 4 ? ('IPv4' as const) : ('IPv6' as const) };
    const behindGateway = (head & remoteIpv6) === 0 ? ('IPv4' as const) : ('IPv6' as const);
    return { ...facts, behindGateway, ...((head & remoteName) === 0 ? {} : { isAskedByName: true }) };
  });
  return { name, service, isImported, cluster, ports, endpoints, resourceVersion, seenMs };
}

/** Whether the address is one of this cluster that leads to an endpoint of another network. */
export function hasVirtualAddress({ address, behindGateway }: EndpointFacts): boolean {
  return behindGateway !== undefined && address.length > 0;
}

export function virtualAddressesIn(slices: readonly NamedSlice[]): Uint8Array[] {
  return slices.flatMap(({ endpoints }) => endpoints.filter(hasVirtualAddress).map(({ address }) => address));
}

/** Whom it belongs to, and whether any of its endpoints has a hostname. */
export function unpackSliceHead(
  reader: ByteReader,
  shapes: SliceShapes,
  name: string,
): SliceOwner & { readonly hasHostnames: boolean } {
  const service = unpackBehind(reader, name);
  const { isImported, cluster, hasHostnames } = shapes.read(reader);
  return { service, isImported, cluster, hasHostnames };
}

/** A text as the part of `known` it begins with, and the rest. */
function packBehind(writer: ByteWriter, text: string, known: string): ByteWriter {
  const most = Math.min(text.length, known.length, 255);
  let common = 0;
  while (common < most && text.charCodeAt(common) === known.charCodeAt(common)) common++;
  return writer.u8(common).text(text.slice(common));
}

function unpackBehind(reader: ByteReader, known: string): string {
  const common = reader.u8();
  return known.slice(0, common) + reader.text();
}

export function packSeen(writer: ByteWriter, seen: Seen): void {
  writer.text(seen.resourceVersion).u48(Math.max(0, Math.round(seen.seenMs)));
}

export function unpackSeen(reader: ByteReader): Seen {
  return { resourceVersion: reader.text(), seenMs: reader.u48() };
}
