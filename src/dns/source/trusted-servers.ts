// DNS servers trusted to name the client's cluster: by address, by certificate, by TSIG key. The option of any other server
// is dropped and its query served. The lists may be replaced while the server runs.

import type { TsigKey } from '../../base/dns/tsig.ts';
import type { Random } from '../../base/world.ts';
import type { ClusterPlace } from '../../catalog/packed/places.ts';
import type { TrustConfig, TrustedServersConfig } from '../config/config.ts';
import type { Answer } from '../message/answer.ts';
import { extendedError, type Query } from '../message/wire.ts';
import type { SourceTag } from '../upstream/question.ts';
import { createAddressFilter } from './address-filter.ts';
import { decodeSource, encodeSource, hopsMax, type SourceCluster } from './source-option.ts';

export class TrustedServers {
  #isInRange: (address: string) => boolean = () => false;
  #identities: ReadonlySet<string> = new Set();

  constructor(config: TrustedServersConfig) {
    this.replace(config);
  }

  replace(config: TrustedServersConfig): void {
    this.#isInRange = createAddressFilter(config.ranges);
    this.#identities = new Set(config.identities);
  }

  isBelieved(query: Query): boolean {
    if (query.tsigKey !== '') return true;
    if (query.clientIdentity !== '' && this.#identities.has(query.clientIdentity)) return true;
    return this.#isInRange(query.clientAddress);
  }

  /** The source cluster from the option, if the sender is trusted to set it. */
  sourceOf(query: Query): SourceCluster | undefined {
    return this.isBelieved(query) ? sourceIn(query) : undefined;
  }
}

/** For the log: the asking cluster, and whether the sender is trusted. */
export function describeSource(query: Query, trusted: TrustedServers): { source?: string; isSourceDropped?: true } {
  const said = sourceIn(query);
  if (said === undefined || said.cluster === '') return {};
  return { source: said.cluster, ...(trusted.isBelieved(query) ? {} : { isSourceDropped: true }) };
}

/** The query is served as if its option had not been there, and its sender learns that. */
export function sayDropped(answer: Answer): void {
  if (answer.extendedError !== -1) return;
  answer.extendedError = extendedError.prohibited;
  answer.extendedText = 'only trusted servers may name the cluster that asks; that option was dropped';
}

function sourceIn(query: Query): SourceCluster | undefined {
  if (query.sourceLength < 0) return undefined;
  return decodeSource(query.packet.subarray(query.sourceAt, query.sourceAt + query.sourceLength));
}

/** A new server's own. */
export function markOf(random: Random): string {
  return Buffer.from(random.bytes(4)).toString('hex');
}

/** Makes the option for queries that go on to a federation's servers. */
export class SourceTagger {
  readonly #cluster: ClusterPlace;
  readonly #optionCode: number;
  readonly #trusted: TrustedServers;
  /** How this server knows a query again that it has passed on before. */
  readonly #mark: string;
  /** For every query that starts here: the same bytes. */
  #own: SourceTag | undefined;

  constructor(options: {
    readonly cluster: ClusterPlace;
    readonly optionCode: number;
    readonly trusted: TrustedServers;
    /** Eight hexadecimal digits, the same in all threads of a server. */
    readonly mark: string;
  }) {
    this.#cluster = options.cluster;
    this.#optionCode = options.optionCode;
    this.#trusted = options.trusted;
    this.#mark = options.mark;
  }

  /** Whether the query says which cluster asks, and may not. */
  isDropping(query: Query): boolean {
    return query.sourceLength >= 0 && !this.#trusted.isBelieved(query);
  }

  /** The hop count is taken from any client: a false one can only refuse its sender. */
  tagFor(query: Query): SourceTag | 'loop' {
    const said = sourceIn(query);
    const { hops = 0, passed = [] } = said ?? {};
    if (hops >= hopsMax || passed.includes(this.#mark)) return 'loop';
    if (said && said.cluster !== '' && this.#trusted.isBelieved(query)) return this.#tag(said);
    const { id, zone, region } = this.#cluster;
    if (hops === 0 && passed.length === 0) return (this.#own ??= this.#tag({ cluster: id, zone, region, hops }));
    return this.#tag({ cluster: id, zone, region, hops, passed });
  }

  /** One hop further than it came. */
  #tag({ cluster, zone, region, hops, passed = [] }: SourceCluster): SourceTag {
    const payload = encodeSource({ cluster, zone, region, hops: hops + 1, passed: [...passed, this.#mark] });
    const key = JSON.stringify([cluster, zone ?? '', region ?? '']);
    return { optionCode: this.#optionCode, payload, key, way: hops === 0 ? '' : `${hops} ${passed.join()}` };
  }
}

export class Trust {
  readonly trusted: TrustedServers;
  #keys: readonly TsigKey[];

  constructor(config: TrustConfig) {
    this.trusted = new TrustedServers(config.trusted);
    this.#keys = config.keys;
  }

  get keys(): readonly TsigKey[] {
    return this.#keys;
  }

  replace(config: TrustConfig): void {
    this.trusted.replace(config.trusted);
    this.#keys = config.keys;
  }
}
