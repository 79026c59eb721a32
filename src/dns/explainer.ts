// Asks the chain a question as a client would and finds, in the facts of the catalog, where each record of its answer comes
// from. Slow and exact: for people, not for the path.

import { formatAddress } from '../base/dns/address.ts';
import { decodeMessage, encodeMessage, type ResourceRecord } from '../base/dns/message.ts';
import { decodeName, tryEncodeName } from '../base/dns/name.ts';
import type { Clock } from '../base/world.ts';
import { recordType } from '../catalog/answers.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { SliceFacts } from '../catalog/facts.ts';
import type { FederationTable } from '../catalog/federation-table.ts';
import { endpointName } from '../catalog/owner-names.ts';
import type { PeerTable } from '../catalog/peer-table.ts';
import { Answer } from './answer.ts';
import type { ExplainedRecord, Explanation, RecordSource } from './explain.ts';
import { explainPeerName, withoutPorts } from './peer-explainer.ts';
import type { DnsService } from './service.ts';
import { encodeSource } from './source-option.ts';
import { classIn, ednsOption, rcodeNames } from './wire.ts';

export interface ExplainerOptions {
  readonly service: DnsService;
  readonly clock: Clock;
  readonly catalog?: Catalog;
  readonly federations?: readonly FederationTable[];
  readonly peerTable?: PeerTable;
  readonly sourceOption: number;
  /** Where names go that are nobody's here. */
  readonly forwardTo?: readonly string[];
}

export interface ExplainRequest {
  readonly name: string;
  /** `A` if absent. */
  readonly type?: string;
  /** Another cluster than this one: only federations answer differently then. */
  readonly from?: string;
}

const typeNames = new Map<number, string>(Object.entries(recordType).map(([name, value]) => [value, name]));
/** Explaining asks as a local client, so that the ACL and the peers' list let it through. */
export const explainerAddress = '127.0.0.1';

export async function explain(options: ExplainerOptions, request: ExplainRequest): Promise<Explanation> {
  const name = request.name.replace(/\.$/, '').toLowerCase();
  const typeName = (request.type ?? 'A').toUpperCase();
  const type = recordType[typeName as keyof typeof recordType];
  if (type === undefined)
    throw new Error(`explain ${name}: type ${typeName} is not one of ${[...typeNames.values()].join(', ')}`);
  const { message, handler } = await ask(options, name, type, request.from);
  const reply = decodeMessage(message);
  const isForeign = handler === 'stub' || handler === 'forward';
  const facts = isForeign ? undefined : factsBehind(options, name);
  return {
    name,
    type: typeName,
    from: (isPerCluster(handler) ? request.from : undefined) ?? options.catalog?.cluster.id ?? request.from ?? '',
    rcode: rcodeNames[reply.flags & 15] ?? String(reply.flags & 15),
    handler,
    extendedError: extendedErrorIn(reply.additionals),
    records: reply.answers.map((record) =>
      explainRecord(record, factsOfPointer(options, record) ?? facts, upstreamOf(options, name, handler)),
    ),
    // A name that went to somebody else may still be one that a peer wanted.
    leftOut: (facts ?? peerFacts(options, name))?.leftOut ?? [],
  };
}

/** Only these answer differently for different clusters; a cluster's own zones are as that cluster sees them. */
function isPerCluster(handler: string): boolean {
  return handler === 'authority' || handler === 'stub';
}

/** Who was asked for a name that others answer. */
function upstreamOf({ service, forwardTo = [] }: ExplainerOptions, name: string, handler: string): RecordSource[] {
  if (handler === 'forward') return [{ kind: 'upstream', name: forwardTo.join(', ') }];
  if (handler !== 'stub') return [];
  const bytes = tryEncodeName(name);
  const entry = bytes && service.stubZones.find(bytes, bytes.length);
  return entry ? [{ kind: 'upstream', name: `${entry.nameservers.join(', ')} for ${entry.zone}` }] : [];
}

async function ask(options: ExplainerOptions, name: string, type: number, from: string | undefined) {
  const source = from === undefined ? undefined : encodeSource({ cluster: from, hops: 0 });
  const option = source ? Buffer.concat([u16(options.sourceOption), u16(source.length), source]) : new Uint8Array(0);
  const query = encodeMessage({
    id: 0,
    flags: 0x0100,
    questions: [{ name, type, class: classIn }],
    answers: [],
    authorities: [],
    additionals: [{ name: '.', type: recordType.OPT, class: 1232, ttl: 0, rdata: option }],
  });
  const answer = new Answer();
  const { responder } = options.service;
  const result = responder.respond(query, 'tcp', explainerAddress, 0, '', answer, 0);
  if (typeof result === 'number') return { message: answer.bytes.slice(0, result), handler: answer.handler };
  // What had to be asked elsewhere comes with a message of its own; the handler's name is known already.
  const { handler } = answer;
  const message = await result;
  if (!message) throw new Error(`explain ${name}: the server stays silent on this question`);
  return { message, handler };
}

interface Facts {
  readonly owner: RecordSource;
  /** Its address stands for the endpoints of all its slices. */
  readonly isVirtual: boolean;
  readonly slices: readonly { readonly source: RecordSource; readonly facts: SliceFacts }[];
  readonly shards: readonly {
    readonly source: RecordSource;
    readonly cluster: string;
    readonly addresses: readonly string[];
  }[];
  readonly leftOut: readonly { readonly what: string; readonly why: string }[];
}

/** What a service of a peer has to do with a name. */
function peerFacts({ peerTable, clock }: ExplainerOptions, name: string): Facts | undefined {
  const found = peerTable && explainPeerName(peerTable, name, clock);
  return found && { isVirtual: false, slices: [], shards: [], ...found };
}

/** An address that belongs to a service of a peer leads to its name. */
function factsOfPointer(options: ExplainerOptions, { type, rdata }: ResourceRecord): Facts | undefined {
  return type === recordType.PTR ? peerFacts(options, decodeName(rdata)) : undefined;
}

/** The service a name belongs to: the two labels before `svc` in our zones. */
function factsBehind(options: ExplainerOptions, name: string): Facts | undefined {
  const { catalog, clock } = options;
  for (const federation of options.federations ?? []) {
    const facts = factsOfShards(federation, name, clock);
    if (facts) return facts;
  }
  const peer = peerFacts(options, withoutPorts(name));
  if (peer) return peer;
  if (!catalog) return undefined;
  for (const zone of catalog.zones) {
    const suffix = `.svc.${zone.name}`;
    if (!name.endsWith(suffix)) continue;
    const labels = name.slice(0, -suffix.length).split('.');
    const [service, namespace] = labels.slice(-2);
    if (!namespace || !service) return undefined;
    const ownerKey = `${zone.source === 'services' ? 's' : 'i'}/${namespace}/${service}`;
    const { owner, slices } = catalog.factsOf(ownerKey);
    const isVirtual = owner.ips.length > 0;
    const ageMs = (seenMs: number) => Math.max(0, clock.monotonicMs() - seenMs);
    return {
      owner: {
        kind: zone.source === 'services' ? 'Service' : 'ServiceImport',
        name: `${namespace}/${service}`,
        ...(owner.isPresent ? { revision: owner.resourceVersion, ageMs: ageMs(owner.seenMs) } : {}),
      },
      isVirtual,
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
        ...(owner.isPresent
          ? []
          : [
              {
                what: name,
                why: `there is no ${zone.source === 'services' ? 'Service' : 'ServiceImport'} ${namespace}/${service}`,
              },
            ]),
        ...catalog.namesOf(ownerKey).leftOut,
      ],
    };
  }
  return undefined;
}

function factsOfShards(federation: FederationTable, name: string, clock: Clock): Facts | undefined {
  const suffix = `.svc.${federation.suffix}`;
  if (!name.endsWith(suffix)) return undefined;
  const [service, namespace, federationName] = name.slice(0, -suffix.length).split('.').slice(-3);
  if (!service || !namespace || !federationName) return undefined;
  const key = `/${federationName}/${namespace}/${service}`;
  const shards = federation.shardsOf(key);
  const ageMs = (seenMs: number) => Math.max(0, clock.monotonicMs() - seenMs);
  const seenOf = (cluster: string) => {
    const seen = federation.seenOf({ federation: federationName, namespace, service, cluster });
    return seen ? { revision: seen.revision, ageMs: ageMs(seen.seenMs) } : {};
  };
  return {
    owner: { kind: 'zone', name: federation.zone.name },
    isVirtual: false,
    slices: [],
    shards: shards
      .filter((shard) => shard.isReady)
      .map((shard) => ({
        source: { kind: 'shard', name: `${key}/${shard.cluster}`, cluster: shard.cluster, ...seenOf(shard.cluster) },
        cluster: shard.cluster,
        addresses: [...shard.clusterIPs, ...shard.externalIPs],
      })),
    leftOut: federation.leftOutOf(key),
  };
}

function explainRecord(record: ResourceRecord, facts: Facts | undefined, upstream: RecordSource[]): ExplainedRecord {
  const { type, ttl } = record;
  const value = textOf(record);
  const text = `${typeNames.get(type) ?? `TYPE${type}`} ${value}`;
  if (!facts) return { text, ttlSeconds: ttl, sources: upstream };
  const slices = facts.slices.filter(({ facts: slice }) => isBehind(record, slice, facts.isVirtual));
  const target = type === recordType.SRV ? decodeName(record.rdata, 6) : '';
  const shards = facts.shards.filter(
    ({ addresses, cluster }) => addresses.includes(value) || target.startsWith(`${cluster}.`),
  );
  return { text, ttlSeconds: ttl, sources: [facts.owner, ...[...slices, ...shards].map(({ source }) => source)] };
}

/** Whether a record leads to an endpoint of this slice: by its address, by its name, or by the address of them all. */
function isBehind({ type, rdata }: ResourceRecord, slice: SliceFacts, isVirtual: boolean): boolean {
  const ready = slice.endpoints.filter(({ isReady }) => isReady);
  if (isVirtual) return ready.length > 0;
  if (type === recordType.A || type === recordType.AAAA)
    return ready.some(({ address }) => Buffer.compare(address, rdata) === 0);
  if (type !== recordType.SRV) return false;
  const [host, cluster] = decodeName(rdata, 6).split('.');
  const isOfCluster = slice.cluster === '' || slice.cluster.split('.')[0] === cluster;
  return isOfCluster && ready.some((endpoint) => endpointName(endpoint) === host);
}

function textOf({ type, rdata }: ResourceRecord): string {
  switch (type) {
    case recordType.A:
    case recordType.AAAA:
      return formatAddress(rdata);
    case recordType.SRV:
      return `${(rdata[4]! << 8) | rdata[5]!} ${decodeName(rdata, 6)}`;
    case recordType.CNAME:
    case recordType.NS:
    case recordType.PTR:
      return decodeName(rdata);
    case recordType.TXT:
      return JSON.stringify(Buffer.from(rdata.subarray(1)).toString('utf8'));
    default:
      return Buffer.from(rdata).toString('hex');
  }
}

function extendedErrorIn(additionals: readonly ResourceRecord[]): string | undefined {
  const opt = additionals.find(({ type }) => type === recordType.OPT);
  if (!opt) return undefined;
  const bytes = Buffer.from(opt.rdata);
  for (let at = 0; at + 4 <= bytes.length; at += 4 + bytes.readUInt16BE(at + 2)) {
    if (bytes.readUInt16BE(at) !== ednsOption.EXTENDED_ERROR) continue;
    const end = at + 4 + bytes.readUInt16BE(at + 2);
    return `${bytes.readUInt16BE(at + 4)} ${bytes.toString('utf8', at + 6, end)}`.trim();
  }
  return undefined;
}

function u16(value: number): Uint8Array {
  return Uint8Array.of(value >> 8, value & 255);
}
