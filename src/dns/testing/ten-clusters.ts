// For tests: queries from ten clusters, interleaved at random, through one caching resolver to an authority that answers each
// cluster differently. Counts answers that were meant for another cluster. The cluster can be left out of the cache's key, to
// show that the count would notice.

import packet from 'dns-packet';
import type { Clock, World } from '../../base/world.ts';
import { Responder } from '../chain/responder.ts';
import { stubHandler } from '../handlers/stub.ts';
import { Answer } from '../message/answer.ts';
import type { Handler } from '../message/handler.ts';
import { messageOf } from '../message/handler.ts';
import { defaultSourceOption } from '../message/wire.ts';
import { decodeSource, encodeSource } from '../source/source-option.ts';
import { SourceTagger, TrustedServers } from '../source/trusted-servers.ts';
import { StubZones } from '../stub-zones/stub-zones.ts';
import { ReplyCache } from '../upstream/cache.ts';
import type { Exchange } from '../upstream/exchange.ts';
import { WaitingRoom } from '../upstream/waiting-room.ts';
import { encodeQuestion, throwFault } from './ask.ts';

export interface TenClustersResult {
  wrong: number;
  readonly distinct: Set<string>;
  readonly hitRatio: number;
}

const name = 'web.shop.world.svc.federation';
const clusterCount = 10;
/** How fast queries come. */
const queryMs = 0.2;

export async function runTenClusters(options: {
  readonly count: number;
  readonly isClusterInKey: boolean;
}): Promise<TenClustersResult> {
  let nowMs = 0;
  let state = 4711;
  const random = () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
  const clock: Clock = { wallMs: () => nowMs, monotonicMs: () => nowMs };
  const world: Pick<World, 'clock' | 'timers' | 'random'> = {
    clock,
    timers: { after: () => ({ cancel: () => {} }) },
    random: { float: random, bytes: (size) => new Uint8Array(size), uuid: () => '' },
  };
  const cache = new ReplyCache();
  const responder = new Responder({
    chain: [resolverOf({ world, cache, isClusterInKey: options.isClusterInKey })],
    onFault: throwFault,
  });
  const queries = Array.from({ length: clusterCount }, (_, i) => queryFrom(`cluster-${i}`));
  const answer = new Answer();
  const result = { wrong: 0, distinct: new Set<string>() };
  for (let i = 0; i < options.count; i++) {
    nowMs += queryMs;
    const cluster = Math.floor(random() * clusterCount);
    const length = responder.respond(queries[cluster]!, 'udp', '127.0.0.1', 53, '', answer, 0);
    const reply = typeof length === 'number' ? answer.bytes.subarray(0, length) : await messageOf(length);
    const address = lastAddress(reply!);
    result.distinct.add(address);
    if (address !== `10.0.0.${cluster}`) result.wrong += 1;
  }
  return { ...result, hitRatio: cache.hits / (cache.hits + cache.misses) };
}

interface ResolverParts {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly cache: ReplyCache;
  readonly isClusterInKey: boolean;
}

function resolverOf({ world, cache, isClusterInKey }: ResolverParts): Handler {
  const zones = new StubZones();
  zones.replace([{ zone: 'world.svc.federation', nameservers: ['192.0.2.1'], sendsSource: true }]);
  const trusted = new TrustedServers({ ranges: ['127.0.0.1/32'], identities: [] });
  const tagger = new SourceTagger({
    cluster: { id: 'here' },
    optionCode: defaultSourceOption,
    trusted,
    mark: '00000001',
  });
  const { tagFor } = tagger;
  if (!isClusterInKey) {
    tagger.tagFor = (query) => {
      const tag = tagFor.call(tagger, query);
      return tag === 'loop' ? tag : { ...tag, key: '' };
    };
  }
  const room = new WaitingRoom({ onFault: throwFault });
  return stubHandler({ zones, tagger, forwarding: { world, cache, exchange: authority, room, onFault: throwFault } });
}

/** Answers 10.0.0.<n> to cluster-<n>. */
const authority: Exchange = {
  ask: async ({ message }) => {
    const query = packet.decode(Buffer.from(message));
    const option = query.additionals![0]!.options.find(({ code }: { code: number }) => code === defaultSourceOption);
    const data = `10.0.0.${decodeSource(option.data)!.cluster.split('-')[1]}`;
    const answers = [{ type: 'A' as const, name, ttl: 30, data }];
    return packet.encode({ type: 'response', id: query.id, questions: query.questions, answers: answers as never });
  },
  close: () => {},
};

function queryFrom(cluster: string): Buffer {
  const data = Buffer.from(encodeSource({ cluster, hops: 0 }));
  return encodeQuestion(`${name} A`, { edns: { options: [{ code: defaultSourceOption, data }] } });
}

/** The one A record stands before our OPT, which is eleven bytes long. */
function lastAddress(reply: Uint8Array): string {
  return [...reply.subarray(reply.length - 15, reply.length - 11)].join('.');
}
