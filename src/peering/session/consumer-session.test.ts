// The consumer's side: what is stored, acknowledged and refused.

import { expect, test } from 'vitest';
import { codes } from '../../base/grpc/status.ts';
import { open, upsert } from '../testing/consumer-session.ts';
import type { serviceOf } from '../testing/services.ts';

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

test('consumer: what is being withdrawn is named again -> stored anew, not taken for held', () => {
  const { take, step, stored } = open({ holds: ['a'] });
  expect(step({ kind: 'withdraw' })).toEqual(['remove a as 1']);
  expect(take(upsert('n1', 'a'))).toEqual(['store a as 2']);
  stored(1);
  expect(stored(2)).toEqual(['ack n1']);
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

test('consumer: closed -> what comes after that is neither stored nor answered', () => {
  const { session, take, stored } = open({ pendingMax: 2 });
  for (const id of ['a', 'b', 'c']) take(upsert(`n-${id}`, id));
  expect(session.state.kind).toBe('closed');
  expect([take(upsert('n4', 'd')), stored(1)]).toEqual([[], []]);
});

test('consumer: the store will not have a service -> NACK with its reason, tried again when it is offered again', () => {
  const { take, step, session } = open();
  take(upsert('n1', 'a'));
  expect(step({ kind: 'storeRefused', nowMs: 0, ticket: 1, reason: 'spec.tags: Duplicate value: "x"' })).toEqual([
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

test('consumer: a DELETE without an id -> NACK; the rest goes on', () => {
  const { take } = open({ holds: ['a'] });
  expect(take({ kind: 'delete', nonce: 'n1', id: '' })).toEqual([
    expect.stringContaining(`nack n1 ${codes.invalidArgument} id: Required value`),
  ]);
  expect(take({ kind: 'delete', nonce: 'n2', id: 'a' })).toEqual(['remove a as 1']);
});
