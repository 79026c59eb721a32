// Who may transfer a zone, how many at the same time, and what a key for transfers is good for.

import { describe, expect, test } from 'vitest';
import { FederationTable } from '../catalog/federation/federation-table.ts';
import { NameTable } from '../catalog/names/name-table.ts';
import { transferHandler } from './handlers/transfer.ts';
import { Answer } from './message/answer.ts';
import type { Later } from './message/handler.ts';
import { Query } from './message/wire.ts';
import { encodeQuestion, stillClock } from './testing/ask.ts';
import { CatalogReader } from './zones/reader.ts';

const key = { name: 'transfer', algorithm: 'hmac-sha256' as const, secret: new Uint8Array(32) };

function setUp({ keys = [], isReady = true }: { keys?: (typeof key)[]; isReady?: boolean } = {}) {
  const names = new NameTable({ serial: 7 });
  const table = new FederationTable({ table: names, federation: 'world' });
  table.putText('/world/shop/web/east', '{"externalIP": "192.0.2.1", "clusterIP": "10.0.0.1"}');
  if (isReady) table.setSynced();
  const reader = new CatalogReader(names.memory);
  const handler = transferHandler({ secondaries: ['192.0.2.7'], keys, reader, zones: [table.zone], clock: stillClock });
  return (question: string, about: Partial<Pick<Query, 'transport' | 'clientAddress' | 'transferKey'>> = {}) => {
    const query = new Query();
    query.read(encodeQuestion(question));
    Object.assign(query, { transport: 'tcp', clientAddress: '192.0.2.7', ...about });
    const answer = new Answer();
    answer.begin(query);
    const step = handler.handle(query, answer);
    return { step, text: typeof step === 'string' ? `${step} ${answer.rcode} ${answer.extendedText}` : 'a transfer' };
  };
}

const zone = 'world.svc.federation AXFR';

/** What follows on the connection. */
function messagesOf(step: unknown): Iterator<Uint8Array> {
  let found: Iterator<Uint8Array> | undefined;
  (step as Later).take((_message, more) => (found = more));
  return found!;
}

describe('dns transfer', () => {
  test.each([
    ['a secondary', zone, {}, 'a transfer'],
    ['over TLS', zone, { transport: 'tls' }, 'a transfer'],
    ['another address', zone, { clientAddress: '192.0.2.8' }, 'next 0 '],
    ['another zone', 'other.svc.federation AXFR', {}, 'next 0 '],
    ['a name in the zone', 'web.shop.world.svc.federation AXFR', {}, 'next 0 '],
    ['another question', 'world.svc.federation SOA', {}, 'next 0 '],
    ['by UDP', zone, { transport: 'udp' }, 'done 5 a transfer wants TCP'],
    ['by HTTPS', zone, { transport: 'https' }, 'done 5 a transfer wants TCP'],
    ['IXFR by UDP', 'world.svc.federation IXFR', { transport: 'udp' }, 'done 0 '],
    ['IXFR without a SOA', 'world.svc.federation IXFR', {}, 'a transfer'],
  ] as const)('asked for a zone -> %s, %s %o: %s', (_what, question, about, expected) => {
    expect(setUp()(question, about).text).toBe(expected);
  });

  test('with a key -> the address alone is not enough', () => {
    const ask = setUp({ keys: [key] });
    expect([ask(zone).text, ask(zone, { transferKey: 'transfer' }).text]).toEqual(['next 0 ', 'a transfer']);
  });

  test('before the zone was read -> SERVFAIL, never an empty zone', () => {
    expect(setUp({ isReady: false })(zone).text).toMatch(/^done 2 /);
  });

  test('more than four at once -> refused, until one has ended or was left', () => {
    const ask = setUp();
    const begun = Array.from({ length: 4 }, () => messagesOf(ask(zone).step));
    for (const messages of begun) messages.next();
    expect(ask(zone).text).toBe('done 5 too many transfers at once');
    begun[0]!.return?.();
    const next = messagesOf(ask(zone).step);
    expect(ask(zone).text).toBe('done 5 too many transfers at once');
    while (!next.next().done);
    expect(ask(zone).text).toBe('a transfer');
  });
});
