import { describe, expect, test } from 'vitest';
import type { Query } from '../message/wire.ts';
import { decodeSource, encodeSource, type SourceCluster } from './source-option.ts';
import { describeSource, SourceTagger, TrustedServers } from './trusted-servers.ts';

const trusted = new TrustedServers({ ranges: ['10.0.0.0/8'], identities: ['resolver-a'] });
const place = { id: 'west', zone: 'z', region: 'r' };
const mark = 'aabbccdd';

/** From a trusted server, unless another address is given. */
function query(source: SourceCluster | Uint8Array | undefined, more: Partial<Query> = {}): Query {
  const option = source === undefined || source instanceof Uint8Array ? source : encodeSource(source);
  const packet = Uint8Array.from([9, 9, ...(option ?? [])]);
  const where = { packet, sourceAt: 2, sourceLength: option?.length ?? -1 };
  return { ...where, tsigKey: '', clientIdentity: '', clientAddress: '10.0.0.1', ...more } as Query;
}

const stranger = { clientAddress: '192.0.2.1' };

describe('trusted servers', () => {
  test('trusted servers: by key, by certificate, by address -> believed; anybody else -> not', () => {
    const believed = [{ ...stranger, tsigKey: 'k' }, { ...stranger, clientIdentity: 'resolver-a' }, {}];
    expect(believed.map((more) => trusted.isBelieved(query(undefined, more)))).toEqual([true, true, true]);
    const others = [stranger, { ...stranger, clientIdentity: 'resolver-b' }];
    expect(others.map((more) => trusted.isBelieved(query(undefined, more)))).toEqual([false, false]);
  });

  test('trusted servers: the source -> of those believed alone', () => {
    const source = { cluster: 'east', hops: 1 };
    expect(trusted.sourceOf(query(source))).toEqual({ ...source, zone: undefined, region: undefined });
    expect(trusted.sourceOf(query(source, stranger))).toBeUndefined();
    expect(trusted.sourceOf(query(undefined))).toBeUndefined();
  });

  test('trusted servers: for the log -> the cluster, marked if it was dropped; nothing without one', () => {
    const source = { cluster: 'east', hops: 1 };
    expect(describeSource(query(source), trusted)).toEqual({ source: 'east' });
    expect(describeSource(query(source, stranger), trusted)).toEqual({ source: 'east', isSourceDropped: true });
    for (const without of [undefined, new Uint8Array(0), { cluster: '', hops: 3 }])
      expect(describeSource(query(without), trusted)).toEqual({});
  });
});

describe('source tagger', () => {
  const tagger = new SourceTagger({ cluster: place, optionCode: 65001, trusted, mark });
  const tagOf = (asked: Query) => {
    const tag = tagger.tagFor(asked);
    if (tag === 'loop') return tag;
    const { payload, ...rest } = tag;
    return { ...rest, source: decodeSource(payload) };
  };

  test('source tagger: a query that starts here -> our own place, one hop, our mark; always the same bytes', () => {
    const own = { cluster: 'west', zone: 'z', region: 'r', hops: 1, passed: [mark] };
    expect(tagOf(query(undefined))).toEqual({ optionCode: 65001, key: '["west","z","r"]', way: '', source: own });
    expect(tagger.tagFor(query(undefined))).toBe(tagger.tagFor(query(undefined, stranger)));
  });

  test('source tagger: passed on by a trusted server -> its place, one hop further, and the way it came', () => {
    const said = { cluster: 'east', hops: 2, passed: ['01020304'] };
    expect(tagOf(query(said))).toEqual({
      optionCode: 65001,
      key: '["east","",""]',
      way: '2 01020304',
      source: { cluster: 'east', zone: undefined, region: undefined, hops: 3, passed: ['01020304', mark] },
    });
  });

  test('source tagger: of somebody not believed -> our place, but its hops and marks go on', () => {
    const said = { cluster: 'east', hops: 2, passed: ['01020304'] };
    expect(tagOf(query(said, stranger))).toMatchObject({
      source: { cluster: 'west', hops: 3, passed: ['01020304', mark] },
    });
    expect(tagOf(query({ cluster: '', hops: 0, passed: ['01020304'] }))).toMatchObject({
      source: { cluster: 'west', hops: 1, passed: ['01020304', mark] },
    });
  });

  test('source tagger: too many hops, or our own mark -> a loop', () => {
    expect(tagOf(query({ cluster: 'east', hops: 8 }))).toBe('loop');
    expect(tagOf(query({ cluster: 'east', hops: 7 }))).not.toBe('loop');
    expect(tagOf(query({ cluster: 'east', hops: 1, passed: [mark] }))).toBe('loop');
  });

  test('source tagger: whether an option is dropped -> only one that is there, of somebody not believed', () => {
    const source = { cluster: 'east', hops: 1 };
    const asked = [
      query(source, stranger),
      query(new Uint8Array(0), stranger),
      query(source),
      query(undefined, stranger),
    ];
    expect(asked.map((one) => tagger.isDropping(one))).toEqual([true, true, false, false]);
  });
});
