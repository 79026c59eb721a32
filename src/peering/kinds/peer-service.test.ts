import { expect, test } from 'vitest';
import { aliasOf, hostnamesOf, type PeerService, peerServiceName, specHash } from './peer-service.ts';

test('names: different ids of a peer -> different objects, plain ones readable', () => {
  expect(peerServiceName('acme', 'db.shop.acme.example')).toBe('acme.db.shop.acme.example');
  const odd = ['outbound_.8080_.v1_.db.mongo.com', 'DB.example', 'a..b', '-a', 'x'.repeat(250)];
  const names = odd.map((id) => peerServiceName('acme', id));
  expect(new Set(names).size).toBe(odd.length);
  for (const name of names) expect(name).toMatch(/^acme\.x-[0-9a-f]{32}$/);
});

test('names: one id at two peers -> two objects: an id is unique within its mesh, and with its peer everywhere [000-16]', () => {
  expect(peerServiceName('acme', 'db.example')).not.toBe(peerServiceName('other', 'db.example'));
  expect(peerServiceName('acme', 'A_b')).not.toBe(peerServiceName('other', 'A_b'));
});

test.each([
  [{ name: 'db', fqdn: 'x.example', id: 'i' }, 'db.acme.svc.peers.local'],
  [{ name: 'My Database', fqdn: 'db.example', id: 'i' }, 'db.acme.svc.peers.local'],
  [{ name: '', fqdn: '_x.example', id: 'i' }, 'x-'],
])('alias: %o -> a name of the peer’s own', (service, alias) => {
  expect(aliasOf('acme', service)).toContain(alias);
  expect(aliasOf('acme', service)).toMatch(/^[a-z0-9-]+\.acme\.svc\.peers\.local$/);
});

test('hostnames: by the rule its FQDN and its alias; by its status where somebody else holds one; none if refused', () => {
  const spec = { peer: 'acme', id: 'db', name: 'db', fqdn: 'DB.acme.example.' };
  const service = (status?: PeerService['status'], changes = {}) =>
    ({ spec: { ...spec, ...changes }, status }) as PeerService;
  expect(hostnamesOf(service())).toEqual(['db.acme.example', 'db.acme.svc.peers.local']);
  expect(hostnamesOf(service({ hostnames: ['db.acme.svc.peers.local'] }))).toEqual(['db.acme.svc.peers.local']);
  expect(hostnamesOf(service({ state: 'Refused' }))).toEqual([]);
  expect(hostnamesOf(service({}, { fqdn: undefined }))).toEqual([]);
});

test('hash of a spec: the order of fields does not matter, their content does', () => {
  const one = specHash({ peer: 'a', id: 'b', labels: { x: '1', y: '2' } });
  expect(specHash({ id: 'b', peer: 'a', labels: { y: '2', x: '1' } })).toBe(one);
  expect(specHash({ id: 'b', peer: 'a', labels: { y: '2', x: '3' } })).not.toBe(one);
});
