// The addresses that a peer may give as its ingress, as a table: each special range by one of its addresses, our own
// ranges and hosts, names that only a cluster knows, and what a Peer allows.

import { expect, test } from 'vitest';
import { type IpRange, parseRange } from '../../base/net/ip.ts';
import { specialRanges } from '../../base/net/special-ranges.ts';
import { serviceOf } from '../testing/services.ts';
import { type IngressBounds, whyNotFound, whyNotIngress } from './ingress-address.ts';
import { validateSharedService } from './shared-service.ts';

const bounds: IngressBounds = {
  allowed: [],
  ownZones: ['cluster.local', 'mesh.example', 'federation'],
  ownRanges: ['10.96.0.0/12', '241.0.0.0/12', 'fd70:6f72:74f1::/64'].map((text) => parseRange(text) as IpRange),
  ownHosts: ['kubernetes.default', '150.214.141.9', '2a00:1450::9', 'api.us.example'],
};

test.each<[string, string | undefined]>([
  ['150.214.141.1', undefined],
  ['2a00:1450::1', undefined],
  ['10.1.2.3', undefined],
  ['fd00:7::1', undefined],
  ['ingress.acme.example', undefined],
  ['INGRESS.acme.example.', undefined],
  ['169.254.169.254', 'link-local'],
  ['fe80::1', 'link-local'],
  ['127.0.0.1', 'loopback'],
  ['::1', 'loopback'],
  ['::ffff:169.254.169.254', 'link-local'],
  ['::ffff:10.1.2.3', undefined],
  ['::ffff:10.96.0.1', 'range of this cluster'],
  ['::a9fe:a9fe', 'IPv4-compatible'],
  ['64:ff9b::7f00:1', 'loopback'],
  ['2002:7f00:1::', 'loopback'],
  ['0.0.0.0', 'unspecified'],
  ['::', 'unspecified'],
  ['224.0.0.1', 'multicast'],
  ['ff02::1', 'multicast'],
  ['255.255.255.255', 'broadcast'],
  ['100.100.100.200', 'cloud metadata'],
  ['241.0.0.7', 'range of this cluster'],
  ['10.96.0.1', 'range of this cluster'],
  ['fd70:6f72:74f1::5', 'range of this cluster'],
  ['150.214.141.9', 'address of our own'],
  ['2a00:1450:0::9', 'address of our own'],
  ['api.us.example', 'host of our own'],
  ['API.us.example.', 'host of our own'],
  ['checkout.shop.svc.cluster.local', 'our own zone cluster.local'],
  ['db.mesh.example', 'our own zone mesh.example'],
  ['db.shop.world.svc.federation', 'our own zone federation'],
  ['kubernetes', 'only inside a cluster'],
  ['kubernetes.default', 'host of our own'],
  ['checkout.shop.svc', 'only inside a cluster'],
  ['localhost', 'only inside a cluster'],
  ['a.localhost', 'only inside a cluster'],
  ['printer.local', 'only inside a cluster'],
  ['metadata.google.internal', 'only inside a cluster'],
])('ingress: %s -> %s', (address, why) => {
  if (why === undefined) expect(whyNotIngress(address, bounds)).toBeUndefined();
  else expect(whyNotIngress(address, bounds)).toContain(why);
});

test.each(specialRanges.filter(({ verdict }) => verdict === 'refused').map(({ text }) => text))(
  'ingress: the special range %s -> refused',
  (cidr) => expect(whyNotIngress(cidr.replace(/\/.*/, ''), bounds)).toContain('special address'),
);

test.each([
  ['127.0.0.1', ['127.0.0.0/8']],
  ['10.96.0.1', ['10.96.0.1']],
  ['fe80::1', ['fe80::/10']],
  ['gateway.shop.svc.cluster.local', ['shop.svc.cluster.local']],
  ['localhost', ['localhost']],
])('ingress: %s, which the Peer allows -> taken', (address, allowed) => {
  expect(whyNotIngress(address, bounds)).toBeDefined();
  expect(whyNotIngress(address, { ...bounds, allowed })).toBeUndefined();
});

test.each<[string, string, string[], string | undefined]>([
  ['ingress.acme.example', '192.0.2.1', [], undefined],
  ['127.0.0.1.nip.io', '127.0.0.1', [], 'special address'],
  ['ingress.acme.example', '10.96.0.1', [], 'range of this cluster'],
  ['ingress.acme.example', '::ffff:10.96.0.1', [], 'range of this cluster'],
  ['ingress.acme.example', '10.96.0.1', ['10.96.0.0/12'], undefined],
  ['ingress.ACME.example.', '127.0.0.1', ['acme.example'], undefined],
  ['ingress.acme.example', '127.0.0.1', ['other.example'], 'special address'],
])('ingress: %s leads to %s, the Peer allows %j -> %s', (name, address, allowed, why) => {
  const found = whyNotFound(name, address, { ...bounds, allowed });
  if (why === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(why);
});

test.each<[string, string[], string | undefined]>([
  ['spiffe://acme.example/db', [], undefined],
  ['spiffe://our.example/ns/shop/sa/db', [], 'san: Forbidden'],
  ['spiffe://db.acme.example/db', [], 'san: Forbidden'],
  ['spiffe://acme.example/db', ['spiffe://acme.example/web', 'spiffe://our.example/db'], 'sans[2]: Forbidden'],
])('shared service: SAN %s %s of the peer acme.example -> %s', (san, moreSans, wrong) => {
  const claims = { allowedDomains: ['*'], ownZones: [], trustDomains: ['acme.example'] };
  const errors = validateSharedService(serviceOf('db', { san, moreSans }), claims);
  const text = errors.map(({ field, message }) => `${field}: ${message.split(':')[0]}`).join();
  expect(text).toBe(wrong ?? '');
});
