import { expect, test } from 'vitest';
import type { Cause } from '../resource.ts';
import { at } from '../testing/resources.ts';
import { makeEntry } from '../view/entry.ts';
import {
  backendEndpoints,
  type CallerTrust,
  callersResource,
  ingressResources,
  type SharedRoute,
  workloadResource,
} from './generate.ts';

const cause = (name: string): Cause => ({ at: 'home', kind: 'PeerExport', namespace: 'shop', name });

function route(name: string, changes: Partial<SharedRoute> = {}): SharedRoute {
  return {
    sni: `${name}.shop.acme.example`,
    san: `spiffe://acme.example/ns/shop/sa/${name}`,
    tls: 'terminate',
    peers: ['globex'],
    backend: { namespace: 'shop', service: name, portName: 'http' },
    cause: cause(name),
    ...changes,
  };
}

const globex: CallerTrust = { peer: 'globex', domain: 'globex.example', bundle: 'g', identities: [] };
const initech: CallerTrust = {
  peer: 'initech',
  domain: 'initech.example',
  bundle: 'i',
  identities: ['spiffe://initech.example/x'],
};
const trustOf = (name: string) => [globex, initech].find(({ peer }) => peer === name);
const sure = { hasCertificate: () => true, trustOf };

test('ingress: closed, because the home does not confirm who may call -> no SNI is admitted, and no chain changes', () => {
  const routes = [route('db'), route('cache', { tls: 'passthrough' })];
  const [open, closed] = [false, true].map((isClosed) => ingressResources({ routes, ...sure, isClosed }).resources);
  const listener = closed![0]!.body as { filter_chain_matcher: object };
  expect({ ...listener, filter_chain_matcher: open![0]!.body['filter_chain_matcher'] }).toEqual(open![0]!.body);
  expect(closed!.slice(1)).toEqual(open!.slice(1));
  const admitted = JSON.stringify(listener.filter_chain_matcher);
  for (const { sni } of routes) expect(admitted).not.toContain(sni);
  expect(makeEntry(closed![0]!).version).not.toBe(makeEntry(open![0]!).version);
});

test('ingress: two services -> one listener that routes by SNI, a cluster for each backend', () => {
  const routes = [route('db'), route('cache', { tls: 'passthrough' })];
  const { resources, withheld } = ingressResources({ routes, ...sure });
  expect(withheld).toEqual([]);
  expect(resources.map(({ type, name }) => `${type} ${name}`)).toEqual([
    'listener ingress',
    'cluster export/shop/cache/http',
    'cluster export/shop/db/http',
    'cluster ingress-callers',
    'listener ingress-callers',
  ]);
  const { filter_chains } = resources[0]!.body as { filter_chains: { name: string; transport_socket?: unknown }[] };
  const chains = filter_chains.map(
    ({ name, transport_socket }) => `${name} ${transport_socket ? 'ends TLS' : 'passes'}`,
  );
  expect(chains).toEqual(['cache.shop.acme.example passes', 'db.shop.acme.example ends TLS']);
  const turned = ingressResources({ routes: [...routes].reverse(), ...sure }).resources;
  expect(turned.map((each) => makeEntry(each).version)).toEqual(resources.map((each) => makeEntry(each).version));
});

test('ingress: two exports with one SNI -> the first by name keeps it, the other is told', () => {
  const { resources, withheld } = ingressResources({
    routes: [route('b', { sni: 'x' }), route('a', { sni: 'X' })],
    ...sure,
  });
  expect(resources.map(({ name }) => name)).toContain('export/shop/a/http');
  expect(withheld).toEqual([
    { cause: cause('b'), reason: 'its SNI x belongs to PeerExport shop/a; give one of them another serviceId' },
  ]);
});

test('ingress: nobody to trust, or no certificate to show -> withheld; others are served', () => {
  const routes = [route('db'), route('cache')];
  const noTrust = ingressResources({ routes, hasCertificate: () => true, trustOf: () => undefined });
  expect(noTrust.resources).toEqual([]);
  const noCertificate = ingressResources({
    routes,
    trustOf,
    hasCertificate: (san) => !san.endsWith('db'),
  });
  expect(noCertificate.withheld.map(({ cause: { name } }) => name)).toEqual(['db']);
  expect(noCertificate.resources.map(({ name }) => name)).toEqual([
    'ingress',
    'export/shop/cache/http',
    'ingress-callers',
    'ingress-callers',
  ]);
});

test('ingress: callers -> each trust domain with its own roots, in any order the same', () => {
  const one = callersResource([globex, initech], [cause('db')]);
  expect(makeEntry(one).version).toBe(makeEntry(callersResource([initech, globex], [cause('db')])).version);
  const context = one.body['validation_context'];
  expect(at(context, 'custom_validator_config.typed_config.trust_domains.*.name')).toEqual([
    'globex.example',
    'initech.example',
  ]);
  expect(at(context, 'match_typed_subject_alt_names.*.matcher')).toEqual([
    { safe_regex: { regex: 'spiffe://globex\\.example/[A-Za-z0-9._/-]+' } },
    { exact: 'spiffe://initech.example/x' },
  ]);
});

test('ingress: two Peers of one trust domain -> its roots once, since Envoy refuses a domain that comes twice', () => {
  const again = { ...globex, peer: 'globex-2', bundle: 'h', identities: ['spiffe://globex.example/y'] };
  const context = callersResource([again, globex], [cause('db')]).body['validation_context'];
  expect(at(context, 'custom_validator_config.typed_config.trust_domains.*')).toEqual([
    { name: 'globex.example', trust_bundle: { inline_string: 'gh' } },
  ]);
  expect(at(context, 'match_typed_subject_alt_names.*.matcher')).toEqual([
    { safe_regex: { regex: 'spiffe://globex\\.example/[A-Za-z0-9._/-]+' } },
  ]);
});

test('ingress: one of two callers goes -> its chain alone goes, and the listener of the TLS stays as it is', () => {
  const both = [route('db', { peers: ['globex', 'initech'] })];
  const bodyOf = (trust: typeof trustOf, name: string) =>
    ingressResources({ ...sure, routes: both, trustOf: trust }).resources.find(
      (each) => each.type === 'listener' && each.name === name,
    )!.body;
  const chains = (trust: typeof trustOf) =>
    at(bodyOf(trust, 'ingress-callers'), 'filter_chains.*') as { name: string }[];
  const before = chains(trustOf);
  expect(before.map(({ name }) => name)).toEqual([
    'db.shop.acme.example spiffe://globex.example/',
    'db.shop.acme.example spiffe://initech.example/x ',
  ]);
  const without = (name: string) => (name === 'globex' ? undefined : trustOf(name));
  expect(chains(without)).toEqual(before.slice(1));
  expect(bodyOf(without, 'ingress')).toEqual(bodyOf(trustOf, 'ingress'));
});
test.each([
  [['spiffe://globex.example/portolan/peering'], ['/portolan/peering', '/portolan/proxy/[A-Za-z0-9._/-]+']],
  [
    ['spiffe://globex.example/portolan/peering', 'spiffe://globex.example/portolan/proxy/sidecar/one'],
    ['/portolan/peering', '/portolan/proxy/sidecar/one'],
  ],
  [['spiffe://globex.example/ns/shop/sa/web'], ['/ns/shop/sa/web']],
  [['spiffe://globex.example/portolan/proxy/ns/shop/sa/web'], ['/portolan/proxy/ns/shop/sa/web']],
])(
  'ingress: a peer is pinned to %j -> its proxies call in the name of the mesh, or those that are pinned',
  (identities, paths) => {
    const globex = { peer: 'globex', domain: 'globex.example', bundle: 'g', identities };
    const { body } = callersResource([globex], [cause('db')]);
    const matchers = at(body, 'validation_context.match_typed_subject_alt_names.*.matcher') as Matcher[];
    const texts = matchers.map(({ exact, safe_regex }) => exact ?? safe_regex?.regex ?? '');
    expect(texts.map((text) => text.replace(/^spiffe:\/\/globex\\?\.example/, ''))).toEqual(paths);
  },
);

interface Matcher {
  readonly exact?: string;
  readonly safe_regex?: { readonly regex: string };
}

test('ingress: a service of two clusters -> the endpoints of both, each once; none here -> those of the other', () => {
  const slice = (address: string, name = 'http') => ({
    ...{
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: address },
      addressType: 'IPv4' as const,
    },
    ports: [{ name, port: 8080, protocol: 'TCP' as const }],
    endpoints: [{ addresses: [address] }],
  });
  const backend = { ...route('db').backend, importedPortName: 'web' };
  const addresses = (own: string[], others: string[], of: typeof backend | SharedRoute['backend'] = backend) =>
    at(
      backendEndpoints(
        of,
        own.map((address) => slice(address)),
        others.map((address) => slice(address, 'web')),
      ).body,
      'endpoints.*.lb_endpoints.*.endpoint.address.socket_address.address',
    );
  expect(addresses(['10.1.0.1'], ['10.1.0.1', '10.2.0.1'])).toEqual([['10.1.0.1', '10.2.0.1']]);
  expect(addresses([], ['10.2.0.1'])).toEqual([['10.2.0.1']]);
  expect(addresses(['10.1.0.1'], ['10.2.0.1'], route('db').backend)).toEqual([['10.1.0.1']]);
});

test('ingress: a backend without endpoints -> an empty assignment; its certificate -> a secret', () => {
  const { backend } = route('db');
  expect(backendEndpoints(backend, []).body).toEqual({ cluster_name: 'export/shop/db/http', endpoints: [] });
  expect(makeEntry(workloadResource('spiffe://a/b', { certificate: 'c', key: 'k' })).name).toContain('spiffe://a/b');
});
