// What the catalog keeps of a PeerService, packed into bytes. Pure.

import { ByteReader, type ByteWriter } from '../base/dns/bytes.ts';
import {
  firstSeenAnnotation,
  hostnamesOf,
  type PeerService,
  type PeerServiceState,
} from '../peering/kinds/peer-service.ts';
import { addressesOf, packSeen, repeat, type Seen, unpackSeen } from './facts.ts';

export interface PeerFacts extends Seen {
  readonly peer: string;
  /** Its key at that peer. */
  readonly id: string;
  readonly state: PeerServiceState;
  /** When it came into that state, as its status says; empty if that is not known. */
  readonly since: string;
  /** Names it claims or was given. */
  readonly hostnames: readonly string[];
  /** Its status says which names it has; otherwise the rule does, and somebody else may have been first. */
  readonly hasVerdict: boolean;
  readonly firstSeenMs: number;
  readonly ips: readonly Uint8Array[];
  /** Of the peer's ingress, each once. */
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
