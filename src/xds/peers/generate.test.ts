import { expect, test } from 'vitest';
import type { PeerService } from '../../peering/kinds/peer-service.ts';
import { at } from '../testing/resources.ts';
import { makeEntry } from '../view/entry.ts';
import { type FoundAddresses, identityResource, peerServiceResources, trustResource } from './generate.ts';

const service: PeerService = {
  apiVersion: 'portolan.dev/v1alpha1',
  kind: 'PeerService',
  metadata: { name: 'acme.db', namespace: 'portolan-system' },
  spec: {
    peer: 'acme',
    id: 'db.shop.acme.example',
    fqdn: 'db.shop.acme.example',
    sans: ['spiffe://acme.example/ns/shop/sa/db'],
    endpoints: [{ address: '192.0.2.10', port: 15443 }],
  },
  status: { ips: ['242.1.0.5'] },
};

const found: Record<string, FoundAddresses> = {
  'ingress.acme.example': { kind: 'found', usable: ['192.0.2.7', '192.0.2.8'], whyNot: [] },
  'loop.acme.example': { kind: 'found', usable: [], whyNot: ['127.0.0.1 is a special address'] },
  'empty.acme.example': { kind: 'found', usable: [], whyNot: [] },
};

function outcome(
  changes: Partial<PeerService['spec']>,
  status: PeerService['status'] = { ips: ['242.1.0.5'] },
  isWithoutAuthority = false,
) {
  return peerServiceResources(
    { ...service, spec: { ...service.spec, ...changes }, status },
    {
      hasTrust: (peer) => peer === 'acme',
      hasIdentity: !isWithoutAuthority,
      addressesOf: (name) => found[name] ?? { kind: 'unknown' },
    },
  );
}

test('peers: a service -> a cluster with SNI, SAN and our certificate, and a listener at its address', () => {
  const made = outcome({});
  if (made.kind !== 'served') throw new Error(made.reason);
  expect(made.resources.map(({ type, name }) => `${type} ${name}`)).toEqual([
    'cluster peer/acme.db',
    'endpoints peer/acme.db',
    'listener peer/acme.db 242.1.0.5 15443',
  ]);
  const tls = at(made.resources[0]!.body, 'transport_socket.typed_config');
  expect(at(tls, 'sni')).toBe('db.shop.acme.example');
  const validation = at(tls, 'common_tls_context.combined_validation_context');
  expect(at(validation, 'default_validation_context.match_typed_subject_alt_names.*.matcher.exact')).toEqual(
    service.spec.sans,
  );
  expect(at(validation, 'validation_context_sds_secret_config.name')).toBe('peering/trust/acme');
  for (const resource of made.resources) expect(makeEntry(resource).any.length).toBeGreaterThan(0);
});

function addressesIn(made: ReturnType<typeof outcome>): unknown {
  if (made.kind !== 'served') throw new Error(made.reason);
  const endpoints = made.resources.find(({ type }) => type === 'endpoints');
  return endpoints && at(endpoints.body, 'endpoints.*.lb_endpoints.*.endpoint.address.socket_address.address');
}

test('peers: an ingress by name -> the addresses that were found and judged, never a name for Envoy to look up', () => {
  const named = (...names: string[]) => outcome({ endpoints: names.map((address) => ({ address, port: 443 })) });
  expect(addressesIn(named('ingress.acme.example'))).toEqual([['192.0.2.7', '192.0.2.8']]);
  expect(addressesIn(named('loop.acme.example', '192.0.2.9'))).toEqual([['192.0.2.9']]);
  for (const made of [named('ingress.acme.example'), named('new.acme.example')]) {
    if (made.kind !== 'served') throw new Error(made.reason);
    expect(made.resources[0]!.body).toMatchObject({ type: 'EDS' });
    expect(JSON.stringify(made.resources)).not.toMatch(/DNS|"address":"[a-z]/);
  }
});

test('peers: a name that was not looked up yet -> no endpoints are sent, so that proxies keep theirs; nobody is held up', () => {
  const made = outcome({ endpoints: [{ address: 'new.acme.example', port: 443 }] });
  expect(addressesIn(made)).toBeUndefined();
  if (made.kind !== 'served') throw new Error(made.reason);
  expect(at(made.resources[0]!.body, 'eds_cluster_config.eds_config.initial_fetch_timeout')).toBe('1s');
  expect(made.resources.map(({ type }) => type)).toContain('listener');
});

test.each([
  ['no identity', outcome({ sans: [] }), 'names no identity'],
  ['no ingress', outcome({ endpoints: [] }), 'no ingress'],
  ['no roots of its peer', outcome({ peer: 'other' }), 'no roots are known for peer other'],
  ['refused', outcome({}, { state: 'Refused' }), 'refused'],
  ['no certificates for proxies', outcome({}, undefined, true), 'issues certificates to its proxies'],
  ['a name that leads to ourselves', outcome({ endpoints: [{ address: 'loop.acme.example', port: 1 }] }), 'special'],
  ['a name without addresses', outcome({ endpoints: [{ address: 'empty.acme.example', port: 1 }] }), 'no address'],
  ['an SNI of 300 bytes', outcome({ sni: 'x'.repeat(300) }), 'more than 255'],
])('peers: %s -> withheld, never dialled unverified', (_, made, reason) => {
  expect(made).toMatchObject({ kind: 'withheld', reason: expect.stringContaining(reason) });
});

test('peers: certificates and roots -> secrets that Envoy can read', () => {
  expect(makeEntry(identityResource({ certificate: 'c', key: 'k' })).name).toBe('peering/identity');
  const trust = makeEntry(trustResource({ name: 'acme', namespace: 'portolan-system', bundle: 'b' }));
  expect(trust.causes).toEqual([{ at: 'home', kind: 'Peer', namespace: 'portolan-system', name: 'acme' }]);
});
