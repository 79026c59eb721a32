// The facts of a PeerService, packed into bytes, and the records of each of its names: its own virtual
// addresses, and SRV with the ports of the peer's ingress, the only ports that the protocol knows. Pure.
//
// SRV lies under the bare name, and under `_<protocol>._tcp` for each protocol that can be a label: the connection between
// meshes is TLS over TCP. `tcp` and the like add nothing to that and have no name of their own.

import { ByteReader, type ByteWriter } from '../../base/dns/bytes.ts';
import { recordType } from '../../base/dns/codes.ts';
import { encodeName } from '../../base/dns/name.ts';
import {
  firstSeenAnnotation,
  hostnamesOf,
  type PeerService,
  type PeerServiceState,
} from '../../peering/kinds/peer-service.ts';
import { addressesOf, packSeen, type Seen, unpackSeen } from '../facts/facts.ts';
import { repeat } from '../facts/ports.ts';
import { order, plainRecord, srvData } from '../names/answers.ts';
import { addAddresses, OwnerNames } from '../names/owner-names.ts';

export interface PeerFacts extends Seen {
  readonly peer: string;
  /** Its key at that peer. */
  readonly id: string;
  readonly state: PeerServiceState;
  /** When it came into that state, as its status says; empty if that is not known. */
  readonly since: string;
  /** Names it claims or was given. */
  readonly hostnames: readonly string[];
  /** Its status has its names; otherwise the rule does, and another service may have been first. */
  readonly hasVerdict: boolean;
  readonly firstSeenMs: number;
  readonly ips: readonly Uint8Array[];
  /** Ports of the peer's ingress, each once. */
  readonly ports: readonly number[];
  readonly protocols: readonly string[];
}

const states: readonly PeerServiceState[] = ['Active', 'Stale', 'Suspect', 'Refused'];

export function factsOfPeerService(service: PeerService, seenMs: number): PeerFacts {
  const { metadata, spec, status } = service;
  return {
    peer: spec.peer,
    id: spec.id,
    state: status?.state ?? 'Active',
    since: status?.since ?? '',
    hostnames: [...new Set(hostnamesOf(service).map((name) => name.toLowerCase()))],
    hasVerdict: status?.hostnames !== undefined,
    firstSeenMs: Number(metadata.annotations?.[firstSeenAnnotation] ?? 0) || 0,
    ips: addressesOf(status?.ips),
    ports: [...new Set((spec.endpoints ?? []).map(({ port }) => port))].sort((one, other) => one - other),
    protocols: spec.protocols ?? [],
    resourceVersion: metadata.resourceVersion ?? '',
    seenMs,
  };
}

export function packPeer(writer: ByteWriter, facts: PeerFacts): Uint8Array {
  writer
    .reset()
    .text(facts.peer)
    .text(facts.id)
    .u8(Math.max(0, states.indexOf(facts.state)))
    .text(facts.since)
    .u8(facts.hasVerdict ? 1 : 0)
    .u48(facts.firstSeenMs);
  packTexts(writer, facts.hostnames);
  writer.u8(facts.ips.length);
  for (const ip of facts.ips) writer.u8(ip.length).raw(ip);
  writer.u16(facts.ports.length);
  for (const port of facts.ports) writer.u16(port);
  packTexts(writer, facts.protocols);
  packSeen(writer, facts);
  return writer.view();
}

export function unpackPeer(bytes: Uint8Array): PeerFacts {
  const reader = new ByteReader(bytes);
  return {
    peer: reader.text(),
    id: reader.text(),
    state: states[reader.u8()]!,
    since: reader.text(),
    hasVerdict: reader.u8() === 1,
    firstSeenMs: reader.u48(),
    hostnames: unpackTexts(reader),
    ips: repeat(reader.u8(), () => reader.raw(reader.u8())),
    ports: repeat(reader.u16(), () => reader.u16()),
    protocols: unpackTexts(reader),
    ...unpackSeen(reader),
  };
}

export function packTexts(writer: ByteWriter, texts: readonly string[]): ByteWriter {
  writer.u16(texts.length);
  for (const text of texts) writer.text(text);
  return writer;
}

export function unpackTexts(reader: ByteReader): string[] {
  return repeat(reader.u16(), () => reader.text());
}

export interface PeerNameOptions {
  /** A name outside our zones is one of its own, and says who serves it. */
  readonly nameserver?: string;
}

export function namesOfPeer(name: string, facts: PeerFacts, options: PeerNameOptions = {}): OwnerNames {
  const names = new OwnerNames(name);
  // It exists before it has an address, so it is not forwarded meanwhile.
  names.exist(name);
  addAddresses(
    names,
    name,
    facts.ips.map((address) => ({ address, cluster: 0 })),
    order.fixed,
  );
  const ports = facts.ports.map((port) => plainRecord(srvData({ port })));
  const labels = new Set(facts.protocols.flatMap(labelOf));
  for (const at of [name, ...[...labels].map((label) => `_${label}._tcp.${name}`)])
    names.add(at, { type: recordType.SRV, order: order.fixed, records: ports });
  if (options.nameserver !== undefined) {
    const records = [plainRecord(encodeName(options.nameserver))];
    names.add(name, { type: recordType.NS, order: order.fixed, records });
  }
  return names;
}

const transports: readonly string[] = ['tcp', 'udp', 'sctp', 'tls'];

/** `kubernetes.io/h2c` is `h2c`. RFC 6335 section 5.1: letters, digits and dashes, at least one letter. */
function labelOf(protocol: string): string[] {
  const label = protocol.toLowerCase().replace(/^[a-z0-9-]+(\.[a-z0-9-]+)+\//, '');
  const isLabel = /^[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?$/.test(label) && /[a-z]/.test(label);
  return isLabel && !transports.includes(label) ? [label] : [];
}
