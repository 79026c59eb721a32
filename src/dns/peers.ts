// Who may tell us on whose behalf it asks. Everybody else's word about that is dropped; the query itself is served.

import type { ClusterPlace } from '../catalog/places.ts';
import type { Answer } from './answer.ts';
import { createAddressFilter } from './handlers/acl.ts';
import { decodeSource, encodeSource, hopsMax, type SourceCluster } from './source-option.ts';
import type { SourceTag } from './upstream/forwarder.ts';
import { extendedError, type Query } from './wire.ts';

export interface PeerConfig {
  /** Address ranges of servers whose word is taken. */
  readonly ranges: readonly string[];
  /** Names in client certificates, over DoT. */
  readonly identities: readonly string[];
}

export const nobody: PeerConfig = { ranges: [], identities: [] };

export class Peers {
  #isInRange: (address: string) => boolean = () => false;
  #identities: ReadonlySet<string> = new Set();

  constructor(config: PeerConfig) {
    this.replace(config);
  }

  replace(config: PeerConfig): void {
    this.#isInRange = createAddressFilter(config.ranges);
    this.#identities = new Set(config.identities);
  }

  isBelieved(query: Query): boolean {
    if (query.tsigKey !== '') return true;
    if (query.clientIdentity !== '' && this.#identities.has(query.clientIdentity)) return true;
    return this.#isInRange(query.clientAddress);
  }

  /** What the option says, from one who may say it. */
  sourceOf(query: Query): SourceCluster | undefined {
    return this.isBelieved(query) ? sourceIn(query) : undefined;
  }
}

/** The query is served as if its option had not been there, and its sender learns that. */
export function sayDropped(answer: Answer): void {
  if (answer.extendedError !== -1) return;
  answer.extendedError = extendedError.prohibited;
  answer.extendedText = 'only listed peers may say which cluster asks; that option was dropped';
}

function sourceIn(query: Query): SourceCluster | undefined {
  if (query.sourceLength < 0) return undefined;
  return decodeSource(query.packet.subarray(query.sourceAt, query.sourceAt + query.sourceLength));
}

/** How often the query has been passed on already, whoever says so: the worst a lie can do is refuse the liar. */
function hopsOf(query: Query): number {
  return sourceIn(query)?.hops ?? 0;
}

/** Makes the option for queries that go on to a federation's servers. */
export class SourceTagger {
  readonly #cluster: ClusterPlace;
  readonly #optionCode: number;
  readonly #peers: Peers;
  /** Our own tag by number of hops: the same bytes for nearly every query. */
  readonly #own: SourceTag[] = [];

  constructor(options: { readonly cluster: ClusterPlace; readonly optionCode: number; readonly peers: Peers }) {
    this.#cluster = options.cluster;
    this.#optionCode = options.optionCode;
    this.#peers = options.peers;
  }

  /** Whether the query says which cluster asks, and may not. */
  isDropping(query: Query): boolean {
    return query.sourceLength >= 0 && !this.#peers.isBelieved(query);
  }

  tagFor(query: Query): SourceTag | 'loop' {
    const hops = hopsOf(query) + 1;
    if (hops > hopsMax) return 'loop';
    const source = this.#peers.sourceOf(query);
    if (source && source.cluster !== '') return this.#tag({ ...source, hops });
    const { id, zone, region } = this.#cluster;
    return (this.#own[hops] ??= this.#tag({ cluster: id, zone, region, hops }));
  }

  #tag(source: SourceCluster): SourceTag {
    const key = JSON.stringify([source.cluster, source.zone ?? '', source.region ?? '']);
    return { optionCode: this.#optionCode, payload: encodeSource(source), key };
  }
}
