import { expect, test } from 'vitest';
import type { PeerService } from '../../peering/kinds/peer-service.ts';
import { at } from '../testing/resources.ts';
import { makeEntry } from '../view/entry.ts';
import { identityResource, peerServiceResources, trustResource } from './generate.ts';

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

test('peers: an ingress by name -> STRICT_DNS that holds nobody up', () => {
  const made = outcome({ endpoints: [{ address: 'ingress.acme.example', port: 443 }] });
  if (made.kind !== 'served') throw new Error(made.reason);
  expect(made.resources[0]!.body).toMatchObject({ type: 'STRICT_DNS', wait_for_warm_on_init: false });
});

test.each([
  ['no identity', outcome({ sans: [] }), 'names no identity'],
  ['no ingress', outcome({ endpoints: [] }), 'no ingress'],
  ['no roots of its peer', outcome({ peer: 'other' }), 'no roots are known for peer other'],
  ['refused', outcome({}, { state: 'Refused' }), 'refused'],
  ['no certificates for proxies', outcome({}, undefined, true), 'issues certificates to its proxies'],
  ['an SNI of 300 bytes', outcome({ sni: 'x'.repeat(300) }), 'more than 255'],
])('peers: %s -> withheld, never dialled unverified', (_, made, reason) => {
  expect(made).toMatchObject({ kind: 'withheld', reason: expect.stringContaining(reason) });
});

test('peers: certificates and roots -> secrets that Envoy can read', () => {
  expect(makeEntry(identityResource({ certificate: 'c', key: 'k' })).name).toBe('peering/identity');
  const trust = makeEntry(trustResource({ name: 'acme', namespace: 'portolan-system', bundle: 'b' }));
  expect(trust.causes).toEqual([{ at: 'home', kind: 'Peer', namespace: 'portolan-system', name: 'acme' }]);
});
