import { expect, test } from 'vitest';
import { codes } from '../../base/grpc/status.ts';
import { serviceOf } from '../testing/services.ts';
import { TestDisk } from '../testing/test-disk.ts';
import { v1alpha1 } from '../transport/wire.ts';
import {
  type ConsumerInput,
  type ConsumerOutput,
  ConsumerSession,
  type ConsumerSessionOptions,
} from './consumer-session.ts';
import { exclusiveOr, type ReceivedMessage } from './messages.ts';

const hashOf = (id: string, changes = {}) => v1alpha1.encodeOffer(serviceOf(id, changes)).hash;

function upsert(nonce: string, id: string, changes: Parameters<typeof serviceOf>[1] = {}): ReceivedMessage {
  const { hash, bytes } = v1alpha1.encodeOffer(serviceOf(id, changes));
  return { kind: 'upsert', nonce, service: serviceOf(id, changes), hash, bytes: bytes.length };
}

function end(
  nonce: string,
  ids: readonly string[],
  changes: { revision?: number; count?: number } = {},
): ReceivedMessage {
  const digest = new Uint8Array(32);
  for (const id of ids) exclusiveOr(digest, hashOf(id));
  return { kind: 'snapshotEnd', nonce, end: { epoch: 'e', revision: 5, count: ids.length, digest, ...changes } };
}

function open(options: Partial<ConsumerSessionOptions> & { holds?: readonly string[]; isExact?: boolean } = {}) {
  const disk = new TestDisk();
  for (const id of options.holds ?? []) disk.put(id, hashOf(id), 100);
  const session = new ConsumerSession({
    resourceUrl: v1alpha1.resourceUrl,
    bounds: { allowedDomains: ['example.com'], ownZones: ['cluster.local'] },
    accepts: () => true,
    servicesMax: 1000,
    bytesMax: 1_000_000,
    held: disk,
    pendingMax: 100,
    silenceMsMin: 3000,
    graceMs: 60_000,
    ...options,
  });
  const step = (input: ConsumerInput) => {
    if (input.kind === 'stored') disk.take(input.ticket);
    const outputs = session.step(input);
    for (const output of outputs) disk.queue(output);
    return texts(outputs);
  };
  step({ kind: 'opened', nowMs: 0, hasSnapshotEnd: options.isExact ?? false });
  const take = (message: ReceivedMessage, nowMs = 0) => step({ kind: 'message', nowMs, message });
  return {
    session,
    step,
    take,
    stored: (ticket: number) => step({ kind: 'stored', ticket }),
    tick: (nowMs: number, aliveMs = nowMs) => step({ kind: 'tick', nowMs, aliveMs }),
  };
}

function ackText({ nonce, note }: { nonce: string; note?: string }): string {
  return note === undefined ? nonce : `${nonce} but ${note}`;
}

function texts(outputs: readonly ConsumerOutput[]): string[] {
  return outputs.map((output) => {
    switch (output.kind) {
      case 'send':
        return output.message.kind === 'nack'
          ? `nack ${output.message.nonce} ${output.message.code} ${output.message.reason}`
          : `${output.message.kind} ${output.message.kind === 'ack' ? ackText(output.message) : ''}`;
      case 'store':
        return `store ${output.service.id} as ${output.ticket}`;
      case 'remove':
        return `remove ${output.ids.join(',')} as ${output.ticket}`;
      case 'suspect':
        return `suspect ${output.ids.join(',')}`;
      case 'reconciled':
        return `reconciled ${output.mode}, ${output.removed} gone`;
      case 'close':
        return `close ${output.code} ${output.reason}`;
      case 'confirmed':
        return `confirmed ${output.id}`;
      case 'refused':
        return `refused ${output.id}: ${output.reason}`;
      case 'named':
        return `named ${output.id}`;
      case 'heldBack':
        return `held back for ${output.unreadable}`;
      case 'nothingConfirmed':
        return 'nothing confirmed';
    }
  });
}

test('consumer: a service arrives -> stored first, acknowledged only when it is on disk [000-19]', () => {
  const { take, stored, session } = open();
  expect(take(upsert('n1', 'a'))).toEqual(['store a as 1']);
  expect(session.state.kind).toBe('updating');
  expect(stored(1)).toEqual(['ack n1']);
  expect(session.state.kind).toBe('receiving');
});

test('consumer: the same content again -> acknowledged without a write [000-12]', () => {
  const { take, stored } = open({ holds: ['a'] });
  expect(take(upsert('n1', 'a'))).toEqual(['confirmed a', 'ack n1']);
  expect(take(upsert('n2', 'a', { tags: ['x'] }))).toEqual(['store a as 1']);
  expect(stored(1)).toEqual(['ack n2']);
  expect(take(upsert('n3', 'a', { tags: ['x'] }))).toEqual(['confirmed a', 'ack n3']);
});

/** Seed 000, "Request message payload example": a SAN without a path, underscores in the ServiceID. */
const example = {
  fqdn: 'db.mongo.com',
  san: 'spiffe://db1.mongo.com',
  endpoints: [{ address: '84.15.190.249', port: 443 }],
};

test.each<[string, Parameters<typeof serviceOf>[1]]>([
  ['the example of the seed', example],
  ['only the five mandatory fields', { ...example, name: '', description: '', tags: [], labels: {} }],
  ['a mesh ingress by its FQDN', { ...example, endpoints: [{ address: 'ingress.mongo.com', port: 443 }] }],
  ['a mesh ingress by its IPv6 address', { ...example, endpoints: [{ address: '2001:db8::1', port: 65_535 }] }],
])('consumer: %s -> taken when it is new and when it is known', (_name, changes) => {
  const { take, stored } = open({ bounds: { allowedDomains: ['mongo.com'], ownZones: [] } });
  const id = 'outbound_.8080_.v1_.db.mongo.com';
  expect(take(upsert('n1', id, { ...changes, protocols: ['tcp'] }))).toEqual([`store ${id} as 1`]);
  expect(stored(1)).toEqual(['ack n1']);
  expect(take(upsert('n2', id, { ...changes, protocols: ['mongo'] }))).toEqual([`store ${id} as 2`]);
  expect(stored(2)).toEqual(['ack n2']);
});

test('consumer: the same CREATE while the first is still being written -> each acknowledged only when its own is on disk', () => {
  const { take, stored } = open();
  expect(take(upsert('n1', 'a'))).toEqual(['store a as 1']);
  expect(take(upsert('n2', 'a'))).toEqual(['store a as 2']);
  expect(stored(1)).toEqual(['ack n1']);
  expect(stored(2)).toEqual(['ack n2']);
  expect(take(upsert('n3', 'a'))).toEqual(['confirmed a', 'ack n3']);
});

test('consumer: a second DELETE while the first is still being made -> acknowledged only when it is gone', () => {
  const { take, stored } = open({ holds: ['a'] });
  expect(take({ kind: 'delete', nonce: 'n1', id: 'a' })).toEqual(['remove a as 1']);
  expect(take({ kind: 'delete', nonce: 'n2', id: 'a' })).toEqual(['remove a as 2']);
  expect(stored(1)).toEqual(['ack n1']);
  expect(stored(2)).toEqual(['ack n2']);
  expect(take({ kind: 'delete', nonce: 'n3', id: 'a' })).toEqual(['ack n3']);
});

test('consumer: what is held is named with bad content, or in a message that cannot be read -> refused, and vouched for', () => {
  const { take } = open({ holds: ['a', 'b'] });
  expect(take(upsert('n1', 'a', { san: 'bad' }))).toEqual([
    'named a',
    expect.stringContaining('refused a: san: Invalid value'),
    expect.stringContaining('nack n1 3 san'),
  ]);
  expect(take({ kind: 'unreadable', nonce: 'n2', id: 'b', reason: 'resource: no text' })[0]).toBe('named b');
});

test('consumer, foreign owner: a message that does not say what it is about -> nothing is removed for not being named', () => {
  const { take, tick } = open({ holds: ['a', 'b'] });
  expect(take(upsert('n1', 'a'))).toEqual(['confirmed a', 'ack n1']);
  take({ kind: 'unreadable', nonce: 'n2', id: '', reason: 'too long' });
  expect(tick(4000)).toEqual(['held back for 1']);
  expect(tick(100_000)).toEqual([]);
});

test('consumer, exact: a message that does not say what it is about -> the end is refused for it, nothing is removed', () => {
  const { take, tick } = open({ holds: ['a', 'b', 'c'], isExact: true });
  take(upsert('n1', 'a'));
  take({ kind: 'unreadable', nonce: 'n2', id: '', reason: 'too long' });
  expect(take(end('n3', ['a'], { count: 2 }))).toEqual([
    'nack n3 9 1 messages of the snapshot could not be read: nothing is removed for what it does not name',
  ]);
  expect(tick(4000)).toEqual(['held back for 1']);
  expect(tick(100_000)).toEqual([]);
});

test('consumer: more services than a peer may share -> the rest is refused as ResourceExhausted, without an object; its end still counts', () => {
  const { take, stored, session, step } = open({ holds: ['a', 'gone'], isExact: true, servicesMax: 3 });
  expect(take(upsert('n1', 'a'))).toEqual(['confirmed a', 'ack n1']);
  expect(take(upsert('n2', 'b'))).toEqual(['store b as 1']);
  const reason = 'services: Too many: 3 of this peer are kept here at most';
  expect(take(upsert('n3', 'c'))).toEqual([`refused c: ${reason}`, `nack n3 ${codes.resourceExhausted} ${reason}`]);
  const message = { ...upsert('n4', 'd', { san: 'bad' }), hash: hashOf('d', { san: 'bad' }) } as ReceivedMessage & {
    hash: Uint8Array;
  };
  const [refused] = session.step({ kind: 'message', nowMs: 0, message });
  expect(refused).toMatchObject({ kind: 'refused', id: 'd', isOverLimit: true });
  expect(stored(1)).toEqual(['ack n2']);
  const digest = new Uint8Array(32);
  for (const hash of [hashOf('a'), hashOf('b'), hashOf('c'), message.hash]) exclusiveOr(digest, hash);
  const last = { kind: 'snapshotEnd', nonce: 'n6', end: { epoch: 'e', revision: 5, count: 4, digest } } as const;
  expect(step({ kind: 'message', nowMs: 0, message: last })).toEqual(['remove gone as 2']);
  expect(take(upsert('n7', 'c'))).toEqual(['store c as 3']);
});

test('consumer: more bytes than may be kept of one peer -> the rest refused as ResourceExhausted, smaller forms taken', () => {
  const { take, stored } = open({ bytesMax: 3000 });
  const large = { description: 'x'.repeat(1000) };
  expect(take(upsert('n1', 'a', large))).toEqual(['store a as 1']);
  expect(take(upsert('n2', 'b', large))).toEqual(['store b as 2']);
  const reason = "services: Too many: 3000 bytes of this peer's services are kept here at most";
  expect(take(upsert('n3', 'c', large))).toEqual([
    `refused c: ${reason}`,
    `nack n3 ${codes.resourceExhausted} ${reason}`,
  ]);
  stored(1);
  stored(2);
  expect(take(upsert('n4', 'a'))).toEqual(['store a as 3']);
  stored(3);
  expect(take(upsert('n5', 'c', large))).toEqual(['store c as 4']);
});

test('consumer: what is being withdrawn is named again -> stored anew, not taken for held', () => {
  const { take, step, stored } = open({ holds: ['a'] });
  expect(step({ kind: 'withdraw' })).toEqual(['remove a as 1']);
  expect(take(upsert('n1', 'a'))).toEqual(['store a as 2']);
  stored(1);
  expect(stored(2)).toEqual(['ack n1']);
});

test('consumer: services without end, all of them bad or unwanted -> what is remembered of them is bounded', () => {
  const { take, session } = open({ servicesMax: 10, accepts: ({ tags }) => !tags.includes('unwanted') });
  for (let n = 0; n < 1000; n += 1) {
    take(upsert(`n${n}`, `s${n}`, { san: 'bad' }));
    take(upsert(`m${n}`, `t${n}`, { tags: ['unwanted'] }));
  }
  expect(session.remembered).toBeLessThanOrEqual(20);
});

test('consumer: ten thousand faults in one service -> a short reason, which says how many more there are', () => {
  const { take } = open();
  const endpoints = Array.from({ length: 10_000 }, () => ({ address: '192.0.2.1', port: 0 }));
  const [refused, nack] = take(upsert('n1', 'a', { endpoints, san: 'x'.repeat(1_000_000) }));
  expect(refused).toMatch(/^refused a: san: Invalid value: "x+…; endpoints\[0\]\.port: .*; and 99\d\d more$/);
  for (const text of [refused, nack]) expect(text?.length).toBeLessThan(1100);
});

test('consumer: CREATE of a known id with other content -> an update', () => {
  const { take, stored } = open({ holds: ['a'] });
  expect(take(upsert('n1', 'a', { description: 'other' }))).toEqual(['store a as 1']);
  expect(stored(1)).toEqual(['ack n1']);
});

test('consumer: DELETE of what is held, and of what is unknown -> both acknowledged [000-12]', () => {
  const { take, stored } = open({ holds: ['a'] });
  expect(take({ kind: 'delete', nonce: 'n1', id: 'a' })).toEqual(['remove a as 1']);
  expect(stored(1)).toEqual(['ack n1']);
  expect(take({ kind: 'delete', nonce: 'n2', id: 'a' })).toEqual(['ack n2']);
});

test('consumer: an owner without nonces -> each message is answered, in the order it was stored', () => {
  const { take, stored } = open();
  take(upsert('', 'a'));
  take(upsert('', 'b'));
  expect(stored(2)).toEqual(['ack ']);
  expect(stored(1)).toEqual(['ack ']);
});

test.each<{ name: string; changes: Parameters<typeof serviceOf>[1]; field: string }>([
  { name: 'no FQDN [000-41]', changes: { fqdn: '' }, field: 'fqdn: Required value' },
  {
    name: 'an FQDN outside the allowed domains',
    changes: { fqdn: 'db.other.org' },
    field: 'fqdn: Forbidden: db.other.org is outside',
  },
  {
    name: 'an FQDN inside our zones',
    changes: { fqdn: 'x.svc.cluster.local' },
    field: 'fqdn: Forbidden: x.svc.cluster.local is inside our own zone',
  },
  { name: 'no SAN', changes: { san: '' }, field: 'san: Required value' },
  { name: 'a bad SAN [000-41]', changes: { san: 'https://example.com' }, field: 'san: Invalid value' },
  { name: 'no protocols [000-41]', changes: { protocols: [] }, field: 'protocols: Required value' },
  { name: 'no mesh ingress [000-48]', changes: { endpoints: [] }, field: 'endpoints: Required value' },
  {
    name: 'a port out of range [000-48]',
    changes: { endpoints: [{ address: '192.0.2.1', port: 70000 }] },
    field: 'endpoints[0].port: Invalid value: 70000',
  },
  {
    name: 'port 0',
    changes: { endpoints: [{ address: '192.0.2.1', port: 0 }] },
    field: 'endpoints[0].port: Invalid value: 0',
  },
  { name: 'an FQDN that is none', changes: { fqdn: 'no name' }, field: 'fqdn: Invalid value' },
  { name: 'a protocol that is none', changes: { protocols: ['http', ''] }, field: 'protocols[1]: Invalid value' },
  {
    name: 'an address that is none [000-48]',
    changes: { endpoints: [{ address: '300.1.2.3', port: 1 }] },
    field: 'endpoints[0].address: Invalid value',
  },
])('consumer: $name -> NACK with the field, what was good before stays', ({ changes, field }) => {
  const { take } = open({ holds: ['a'] });
  const [refused, nack, ...rest] = take(upsert('n1', 'a', changes)).filter((text) => text !== 'named a');
  expect(refused).toContain(`refused a: ${field}`);
  expect(nack).toContain(`nack n1 ${codes.invalidArgument} ${field}`);
  expect(rest).toEqual([]);
});

test.each([
  ['no ServiceID', '', 'id: Required value'],
  ['a ServiceID that cannot be an SNI', 'a b', 'id: Invalid value: "a b"'],
])('consumer: %s -> NACK with the field', (_name, id, field) => {
  const [, nack] = open().take(upsert('n1', id, { fqdn: 'db.example.com', san: 'spiffe://example.com/db' }));
  expect(nack).toContain(`nack n1 ${codes.invalidArgument} ${field}`);
});

test('consumer: several fields are wrong -> one NACK names them all [000-15]', () => {
  const [, nack] = open().take(upsert('n1', 'a', { san: '', protocols: [] }));
  expect(nack).toContain('san: Required value');
  expect(nack).toContain('protocols: Required value');
});

test('consumer: an unreadable message -> NACK with the reason, the stream goes on', () => {
  const { take } = open();
  expect(take({ kind: 'unreadable', nonce: 'n1', id: 'x', reason: 'operation: 9 is unknown' })).toEqual([
    'refused x: operation: 9 is unknown',
    `nack n1 ${codes.invalidArgument} operation: 9 is unknown`,
  ]);
  expect(take(upsert('n2', 'a'))).toEqual(['store a as 1']);
});

test('consumer: a service it does not want -> acknowledged and not kept, removed if it was', () => {
  const { take, stored } = open({ accepts: (service) => service.tags.includes('wanted'), holds: ['old'] });
  expect(take(upsert('n1', 'a'))).toEqual(['ack n1']);
  expect(take(upsert('n2', 'old', { tags: ['other'] }))).toEqual(['remove old as 1']);
  expect(stored(1)).toEqual(['ack n2']);
});

test('consumer: exact snapshot -> what was not mentioned goes at its end, not before', () => {
  const { take, stored, tick } = open({ holds: ['a', 'b', 'gone'], isExact: true });
  take(upsert('n1', 'a'));
  take(upsert('n2', 'b'));
  expect(tick(1_000_000)).toEqual([]);
  expect(take(end('n3', ['a', 'b']))).toEqual(['remove gone as 1']);
  expect(stored(1)).toEqual(['reconciled exact, 1 gone', 'ack n3']);
});

test('consumer: exact snapshot, its services still on their way to the disk -> its end is acknowledged after them', () => {
  const { take, stored } = open({ isExact: true });
  take(upsert('n1', 'a'));
  take(upsert('n2', 'b'));
  expect(take(end('n3', ['a', 'b']))).toEqual([]);
  expect(stored(2)).toEqual(['ack n2']);
  expect(stored(1)).toEqual(['ack n1', 'reconciled exact, 0 gone', 'ack n3']);
});

test('consumer: exact snapshot, a refused service -> counts as mentioned and stays', () => {
  const { take, session } = open({ holds: ['a'], isExact: true });
  const bad = { san: '' };
  take(upsert('n1', 'a', bad));
  const message = end('n2', []) as Extract<ReceivedMessage, { kind: 'snapshotEnd' }>;
  const digest = new Uint8Array(32);
  exclusiveOr(digest, hashOf('a', bad));
  expect(take({ ...message, end: { ...message.end, count: 1, digest } })).toEqual([
    'reconciled exact, 0 gone',
    'ack n2',
  ]);
  expect(session.state.kind).toBe('waiting');
});

test.each([
  { name: 'a count that does not match', message: end('n2', ['a'], { count: 2 }) },
  { name: 'another content', message: end('n2', ['b']) },
  { name: 'an older revision of the same epoch', message: end('n2', ['a'], { revision: 4 }) },
])('consumer: the end of the snapshot has $name -> nothing goes', ({ message }) => {
  const { take } = open({
    holds: ['a', 'x'],
    isExact: true,
    lastEnd: { epoch: 'e', revision: 5, count: 1, digest: new Uint8Array(32) },
  });
  take(upsert('n1', 'a'));
  expect(take(message)).toEqual([expect.stringContaining(`nack n2 ${codes.failedPrecondition}`)]);
});

test('consumer: a foreign owner falls silent -> unconfirmed entries are suspect, and go after the grace', () => {
  const { session, take, stored, tick } = open({ holds: ['a', 'gone'] });
  take(upsert('n1', 'a'), 100);
  expect(tick(3000)).toEqual([]);
  expect(session.suspects).toBe(0);
  expect(tick(3100)).toEqual(['suspect gone']);
  expect(session.suspects).toBe(1);
  expect(tick(63_000)).toEqual([]);
  expect(tick(63_100)).toEqual(['remove gone as 1']);
  expect(stored(1)).toEqual(['reconciled quiescence, 1 gone']);
});

test('consumer: a slow foreign owner -> silence is measured against the gaps it was seen to make', () => {
  const { take, tick } = open({ holds: ['a', 'b', 'c'] });
  take(upsert('n1', 'a'), 0);
  take(upsert('n2', 'b'), 1000);
  expect(tick(20_999)).toEqual([]);
  expect(tick(21_000)).toEqual(['suspect c']);
});

test('consumer: silence on a stream whose keep-alive does not answer -> nothing is concluded', () => {
  const { take, tick } = open({ holds: ['a', 'gone'] });
  take(upsert('n1', 'a'), 100);
  expect(tick(100_000, 100)).toEqual([]);
});

test('consumer: a suspect is mentioned during the grace -> it stays', () => {
  const { take, tick } = open({ holds: ['a', 'late'] });
  take(upsert('n1', 'a'), 0);
  tick(3000);
  expect(take(upsert('n2', 'late'), 4000)).toEqual(['confirmed late', 'ack n2']);
  expect(tick(63_000)).toEqual(['reconciled quiescence, 0 gone']);
});

test('consumer: a foreign owner mentions nothing of what is held -> retention decides, nothing goes', () => {
  const { tick } = open({ holds: ['a', 'b'] });
  expect(tick(3000)).toEqual(['nothing confirmed']);
  expect(tick(1_000_000)).toEqual([]);
});

test('consumer: a foreign owner names only services that are new -> nothing of what is held goes', () => {
  const { take, stored, tick } = open({ holds: ['a', 'b'] });
  take(upsert('n1', 'new'), 0);
  stored(1);
  expect(tick(3000)).toEqual(['nothing confirmed']);
});

test('consumer: a foreign owner is slow to begin -> its catalog is awaited after all', () => {
  const { take, tick } = open({ holds: ['a', 'gone'] });
  expect(tick(3000)).toEqual(['nothing confirmed']);
  take(upsert('n1', 'a'), 5000);
  expect(tick(8000)).toEqual([]);
  expect(tick(105_000)).toEqual(['suspect gone']);
});

test('consumer: a peer that floods -> InvalidArgument [000-35]', () => {
  const { take } = open({ pendingMax: 2 });
  take(upsert('n1', 'a'));
  take(upsert('n2', 'b'));
  expect(take(upsert('n3', 'c'))[0]).toContain(`close ${codes.invalidArgument}`);
});

test('consumer: closed -> what comes after that is neither stored nor answered', () => {
  const { session, take, stored } = open({ pendingMax: 2 });
  for (const id of ['a', 'b', 'c']) take(upsert(`n-${id}`, id));
  expect(session.state.kind).toBe('closed');
  expect([take(upsert('n4', 'd')), stored(1)]).toEqual([[], []]);
});

test('consumer: a service still on its way to the disk is offered larger -> its bytes count once', () => {
  const { hash: _hash, bytes } = upsert('n1', 'a') as Extract<ReceivedMessage, { kind: 'upsert' }>;
  const { take } = open({ bytesMax: 2 * bytes + 50 });
  take(upsert('n1', 'a'));
  expect(take(upsert('n2', 'a', { description: 'longer' }))).toEqual(['store a as 2']);
  expect(take(upsert('n3', 'b'))).toEqual(['store b as 3']);
});

test('consumer: the store will not have a service -> NACK with its reason, tried again when it is offered again', () => {
  const { take, step, session } = open();
  take(upsert('n1', 'a'));
  expect(step({ kind: 'storeRefused', ticket: 1, reason: 'spec.tags: Duplicate value: "x"' })).toEqual([
    'refused a: spec.tags: Duplicate value: "x"',
    `nack n1 ${codes.invalidArgument} spec.tags: Duplicate value: "x"`,
  ]);
  expect(session.state.kind).toBe('receiving');
  expect(take(upsert('n2', 'a'))).toEqual(['store a as 2']);
});

test('consumer: there is something to say of a service -> said with its ACK, stored or held already', () => {
  const { take, stored } = open({ holds: ['b'], noteOf: (id) => `${id} is held by another` });
  take(upsert('1', 'a'));
  expect(stored(1)).toEqual(['ack 1 but a is held by another']);
  expect(take(upsert('2', 'b'))).toEqual(['confirmed b', 'ack 2 but b is held by another']);
});

test('consumer: it is something else later -> an owner of ours hears it under the same nonce, once', () => {
  let note = '';
  const { take, stored, step } = open({ isExact: true, noteOf: () => note });
  take(upsert('1', 'a'));
  note = 'early';
  expect(step({ kind: 'noted', id: 'a' })).toEqual([]);
  expect(stored(1)).toEqual(['ack 1 but early']);
  expect(step({ kind: 'noted', id: 'a' })).toEqual([]);
  note = 'contested';
  expect(step({ kind: 'noted', id: 'a' })).toEqual(['ack 1 but contested']);
  note = '';
  expect(step({ kind: 'noted', id: 'a' })).toEqual(['ack 1']);
  expect(step({ kind: 'noted', id: 'nobody' })).toEqual([]);
  take({ kind: 'delete', nonce: '2', id: 'a' });
  note = 'too late';
  expect(step({ kind: 'noted', id: 'a' })).toEqual([]);
});

test('consumer: it is something else later -> a foreign owner is not answered twice, and hears it with its next message', () => {
  let note = '';
  const { take, stored, step } = open({ noteOf: () => note });
  take(upsert('1', 'a'));
  stored(1);
  note = 'contested';
  expect(step({ kind: 'noted', id: 'a' })).toEqual([]);
  expect(take(upsert('2', 'a'))).toEqual(['confirmed a', 'ack 2 but contested']);
});

test('consumer: on the way to the disk -> counted with its bytes until it is there; a removal has none', () => {
  const { session, take, stored } = open({ holds: ['b'] });
  const [first, second] = [upsert('n1', 'a'), upsert('n2', 'c')] as Extract<ReceivedMessage, { kind: 'upsert' }>[];
  take(first!);
  take(second!);
  take({ kind: 'delete', nonce: 'n3', id: 'b' });
  const counts = () => [session.unacknowledged, session.unacknowledgedBytes];
  expect(counts()).toEqual([3, first!.bytes + second!.bytes]);
  stored(1);
  expect(counts()).toEqual([2, second!.bytes]);
  stored(3);
  stored(2);
  expect(counts()).toEqual([0, 0]);
});

test('consumer: a removed service -> its place and its bytes are free for another, to the last byte', () => {
  const { bytes } = upsert('n', 'a') as Extract<ReceivedMessage, { kind: 'upsert' }>;
  const { take, stored } = open({ bytesMax: bytes, servicesMax: 1 });
  expect(take(upsert('n1', 'a'))).toEqual(['store a as 1']);
  stored(1);
  expect(take(upsert('n2', 'b'))[1]).toContain(`nack n2 ${codes.resourceExhausted}`);
  expect(take({ kind: 'delete', nonce: 'n3', id: 'a' })).toEqual(['remove a as 2']);
  stored(2);
  expect(take(upsert('n4', 'b'))).toEqual(['store b as 3']);
});

test('consumer: a refused service -> its note takes a place, until it is good or deleted', () => {
  const { take, stored } = open({ servicesMax: 2 });
  take(upsert('n1', 'bad', { san: 'bad' }));
  expect(take(upsert('n2', 'a'))).toEqual(['store a as 1']);
  stored(1);
  expect(take(upsert('n3', 'b'))[1]).toContain(`nack n3 ${codes.resourceExhausted}`);
  expect(take(upsert('n4', 'bad'))).toEqual(['store bad as 2']);
  stored(2);
  expect(take({ kind: 'delete', nonce: 'n5', id: 'bad' })).toEqual(['remove bad as 3']);
  stored(3);
  expect(take(upsert('n6', 'b'))).toEqual(['store b as 4']);
});

test('consumer: a held service is refused in a new form while there is no room -> refused for its form, not for room', () => {
  const { session } = open({ holds: ['a'], servicesMax: 1 });
  const [refused] = session.step({ kind: 'message', nowMs: 0, message: upsert('n1', 'a', { san: 'bad' }) });
  expect(refused).toMatchObject({ kind: 'named', id: 'a' });
  const [, again] = session.step({ kind: 'message', nowMs: 0, message: upsert('n2', 'a', { san: 'bad' }) });
  expect(again).toMatchObject({ kind: 'refused', id: 'a' });
  expect(again).not.toHaveProperty('isOverLimit');
});

test('consumer: an unreadable message without an id, or with one that is too long -> no place is taken for a note', () => {
  const { take } = open({ servicesMax: 1 });
  for (const id of ['', 'x'.repeat(10_000)]) take({ kind: 'unreadable', nonce: 'n1', id, reason: 'torn' });
  expect(take(upsert('n2', 'a'))).toEqual(['store a as 1']);
});

test('consumer: a DELETE without an id -> NACK; the rest goes on', () => {
  const { take } = open({ holds: ['a'] });
  expect(take({ kind: 'delete', nonce: 'n1', id: '' })).toEqual([
    expect.stringContaining(`nack n1 ${codes.invalidArgument} id: Required value`),
  ]);
  expect(take({ kind: 'delete', nonce: 'n2', id: 'a' })).toEqual(['remove a as 1']);
});

test('consumer, exact: a service that is deleted during its own snapshot -> not part of what the end counts', () => {
  const { take, stored } = open({ isExact: true });
  take(upsert('n1', 'a'));
  take(upsert('n2', 'b'));
  stored(1);
  stored(2);
  take({ kind: 'delete', nonce: 'n3', id: 'b' });
  stored(3);
  expect(take(end('n4', ['a']))).toContain('ack n4');
});
