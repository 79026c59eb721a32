// Asks the chain a question as a client would and finds, in the facts of the catalog, where each record of its answer comes
// from. Slow and exact: for people, not for the path.

import { copyOf } from '../../base/bytes/copy.ts';
import { classIn, parseType, rcodeNames, recordType, typeText } from '../../base/dns/codes.ts';
import { decodeMessage, encodeMessage, type ResourceRecord } from '../../base/dns/message.ts';
import { decodeName, tryEncodeName } from '../../base/dns/name.ts';
import type { SliceFacts } from '../../catalog/facts/facts.ts';
import { endpointName } from '../../catalog/names/owner-names.ts';
import { tier } from '../../catalog/packed/places.ts';
import type { DnsService } from '../chain/service.ts';
import { Answer } from '../message/answer.ts';
import { messageOf } from '../message/handler.ts';
import { ednsOption } from '../message/wire.ts';
import { encodeSource } from '../source/source-option.ts';
import { type FactSources, type Facts, factsBehind, peerFacts } from './explainer-facts.ts';
import type { ExplainedRecord, Explanation, Nearness, RecordSource } from './explanation.ts';
import { rdataText } from './record-text.ts';

export interface ExplainerOptions extends FactSources {
  readonly service: DnsService;
  readonly sourceOption: number;
  /** Upstream for unknown names. */
  readonly forwardTo?: readonly string[];
}

export interface ExplainRequest {
  readonly name: string;
  /** `A` if absent. */
  readonly type?: string;
  /** Another cluster than this one: only federations answer differently then. */
  readonly from?: string;
}

/** Explaining asks as a local client, so that the ACL and the peers' list let it through. */
export const explainerAddress = '127.0.0.1';

export async function explain(options: ExplainerOptions, request: ExplainRequest): Promise<Explanation> {
  const name = request.name.replace(/\.$/, '').toLowerCase();
  const type = parseType(request.type ?? 'A');
  if (type === undefined)
    throw new Error(`explain ${name}: type ${request.type} is not a record type; want A, SRV or another, or TYPE65`);
  const { message, handler, zone } = await ask(options, name, type, request.from);
  const reply = decodeMessage(message);
  const isForeign = isOfOthers(handler);
  const { reader } = options.service;
  const isFromCopy = !isForeign && reader.old !== undefined && !reader.isReady(zone);
  const facts = isForeign ? undefined : factsBehind(options, name);
  const from = (isPerCluster(handler) ? request.from : undefined) ?? options.catalog?.cluster.id ?? request.from ?? '';
  const found = { options, name, handler, isFromCopy, facts, nearnessOf: nearnessFrom(options, from) };
  const records = reply.answers.map((record) => explainRecord(record, found));
  const rcode = rcodeNames[reply.flags & 15] ?? String(reply.flags & 15);
  return {
    name,
    type: typeText(type),
    from,
    rcode,
    handler,
    extendedError: extendedErrorIn(reply.additionals),
    records,
    leftOut: leftOutOf(found, records, { type: typeText(type), rcode }),
  };
}

/** Only these answer differently for different clusters; a cluster's own zones are as that cluster sees them. */
function isPerCluster(handler: string): boolean {
  return handler === 'authority' || handler === 'stub';
}

const nearness: Readonly<Record<number, Nearness>> = {
  [tier.own]: 'own cluster',
  [tier.zone]: 'same zone',
  [tier.region]: 'same region',
  [tier.rest]: 'elsewhere',
};

function nearnessFrom({ service }: ExplainerOptions, from: string): (cluster: string) => Nearness {
  const { places } = service.reader;
  const asker = places.standAt(places.find('c', from));
  return (cluster) => nearness[places.tierOf(asker, places.find('c', cluster))] ?? 'elsewhere';
}

/** The upstream servers for a name that others answer. */
function upstreamOf({ service, forwardTo = [] }: ExplainerOptions, name: string): RecordSource[] {
  const bytes = tryEncodeName(name);
  const entry = bytes && service.stubZones.find(bytes, bytes.length);
  if (entry) return [{ kind: 'upstream', name: `${entry.nameservers.join(', ')} for ${entry.zone}` }];
  return forwardTo.length > 0 ? [{ kind: 'upstream', name: forwardTo.join(', ') }] : [];
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
  const { zone } = answer;
  if (typeof result === 'number') return { message: copyOf(answer.bytes, 0, result), handler: answer.handler, zone };
  // A forwarded answer is a message of its own; its handler is already known.
  const { handler } = answer;
  const message = await messageOf(result);
  if (!message) throw new Error(`explain ${name}: the server stays silent on this question`);
  return { message, handler, zone };
}

interface Found {
  readonly options: ExplainerOptions;
  /** The question, the handler that answered, and the sources of the answer. */
  readonly name: string;
  readonly handler: string;
  /** Its zone has not been read: what an earlier process left answers, and facts are not known. */
  readonly isFromCopy: boolean;
  readonly facts: Facts | undefined;
  readonly nearnessOf: (cluster: string) => Nearness;
}

/** Whether the names that this handler answers do not come from the home. */
function isOfOthers(handler: string): boolean {
  return handler === 'stub' || handler === 'forward' || handler === 'local';
}

/** A record behind an alias is not the alias's: it is explained by its own name. */
function explainRecord(record: ResourceRecord, found: Found): ExplainedRecord {
  const { options, name, handler, nearnessOf } = found;
  const isBehindAlias = record.name !== name;
  const text = `${typeText(record.type)} ${rdataText(record)}`;
  const plain = { text, ttlSeconds: record.ttl, ...(isBehindAlias ? { owner: record.name } : {}) };
  if (found.isFromCopy)
    return { ...plain, sources: [{ kind: 'copy', name: 'of names on disk, left by an earlier process' }] };
  if (handler === 'local' && !isBehindAlias)
    return { ...plain, sources: [{ kind: 'local', name: 'records and rules of this server' }] };
  const isForeign = handler === 'stub' || handler === 'forward';
  const own = isBehindAlias && !isForeign ? factsBehind(options, record.name) : found.facts;
  const facts = factsOfPointer(options, record) ?? own;
  if (!facts) return { ...plain, sources: isForeign ? upstreamOf(options, name) : upstreamOf(options, record.name) };
  const slices = facts.slices.filter(({ facts: slice }) => isBehind(record, slice, facts.isVirtual));
  const shards = facts.shards.filter(({ addresses, cluster }) => isOfShard(record, addresses, cluster));
  const sources = [facts.owner, ...[...slices, ...shards].map(({ source }) => source)];
  const clusters = shards.map(({ cluster }) => nearnessOf(cluster));
  const near = nearest.find((each) => clusters.includes(each));
  return { ...plain, ...(near ? { near } : {}), sources };
}

const nearest: readonly Nearness[] = ['own cluster', 'same zone', 'same region', 'elsewhere'];

/** An address that belongs to a service of a peer leads to its name. */
function factsOfPointer(options: ExplainerOptions, { type, rdata }: ResourceRecord): Facts | undefined {
  return type === recordType.PTR ? peerFacts(options, decodeName(rdata)) : undefined;
}

function isOfShard(record: ResourceRecord, addresses: readonly string[], cluster: string): boolean {
  if (record.type === recordType.SRV) return decodeName(record.rdata, 6).startsWith(`${cluster}.`);
  return addresses.includes(rdataText(record));
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

function leftOutOf(
  { options, name, isFromCopy, facts, nearnessOf }: Found,
  records: readonly ExplainedRecord[],
  { type, rcode }: { readonly type: string; readonly rcode: string },
): Explanation['leftOut'] {
  if (isFromCopy) return [];
  // A forwarded name may still be one that a peer wanted.
  const known = facts ?? peerFacts(options, name);
  if (!known) return [];
  const last = records.findLast(({ owner }) => owner !== undefined)?.owner;
  const behindAlias = last === undefined ? [] : (factsBehind(options, last)?.leftOut ?? []);
  const leftOut = [...known.leftOut, ...behindAlias, ...farther(known, records, nearnessOf)];
  const isEmpty = records.length === 0 && (rcode === 'NXDOMAIN' || rcode === 'NOERROR');
  const why = (isEmpty && facts?.whyNot(rcode === 'NXDOMAIN', type)) || '';
  return why === '' ? leftOut : [{ what: name, why }, ...leftOut];
}

/** Shards that are well and that the policy keeps from this asker because nearer ones are. */
function farther(
  { shards, policy }: Facts,
  records: readonly ExplainedRecord[],
  nearnessOf: Found['nearnessOf'],
): Explanation['leftOut'] {
  if (policy === undefined || policy === 'ordered' || records.length === 0) return [];
  const shown = new Set(records.flatMap(({ sources }) => sources.map(({ cluster }) => cluster)));
  const nearestShown = nearest.find((each) => records.some(({ near }) => near === each));
  return shards
    .filter(({ cluster }) => !shown.has(cluster))
    .filter(({ cluster }) => nearest.indexOf(nearnessOf(cluster)) > nearest.indexOf(nearestShown ?? 'elsewhere'))
    .map(({ cluster }) => ({
      what: `shard in cluster ${cluster}`,
      why: `${nearnessOf(cluster)}, and policy ${policy} stops at ${nearestShown}`,
    }));
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
