// The generator against the meaning of the rules, through a model of Envoy's choice; its names; and what must not matter.

import { describe, expect, test } from 'vitest';
import { parseIp } from '../../base/net/ip.ts';
import type { MeshExternalService } from '../../external/kinds/mesh-external-service.ts';
import type { ExtensionPlugin } from '../../external/plugins/plugin.ts';
import { targetsOf } from '../../external/rules/target.ts';
import { externalService } from '../../external/testing/services.ts';
import { externalResources } from './generate.ts';
import { findDisagreement, testInput } from './testing/agreement.ts';
import { EnvoyModel } from './testing/envoy-model.ts';
import { pick, ports, randomOf, randomServices } from './testing/random-rules.ts';

const generate = (services: readonly MeshExternalService[]) => externalResources({ ...testInput, services });
const namesOf = (services: readonly MeshExternalService[], type: string) =>
  generate(services).flatMap((resource) => (resource.type === type ? [resource.name] : []));

/** The text of each chain. */
function chainsIn(resources: ReturnType<typeof generate>): string[] {
  const listeners = resources.filter(({ type }) => type === 'listener');
  return listeners.flatMap(({ body }) => (body['filter_chains'] as object[]).map((chain) => JSON.stringify(chain)));
}

describe('external resources', () => {
  test('3,000 random connections and requests -> Envoy picks what the rules say', () => {
    expect(findDisagreement(randomOf(1), 3000)).toBeUndefined();
  });

  test('the same services in any order -> the same bytes', () => {
    const random = randomOf(7);
    for (let round = 0; round < 20; round += 1) {
      const services = randomServices(random, { count: 8 });
      const shuffled = services.toSorted(() => random() - 0.5);
      expect(JSON.stringify(generate(shuffled))).toBe(JSON.stringify(generate(services)));
    }
  });

  test('broken services among others -> the others give the same bytes as alone', () => {
    const random = randomOf(9);
    const broken = [
      externalService('{ match: [{ type: IP, value: nonsense, port: 80 }] }', { name: 'b1' }),
      externalService('{ match: [{ type: InternalVIP, value: a.b, port: 80 }] }', { name: 'b2' }),
      externalService('null', { name: 'b5' }),
      externalService('{ match: [{ type: IP, value: 10.0.0.1, port: 80 }] }', {
        name: 'b6',
        labels: { 'kuma.io/mesh': 'other' },
      }),
    ];
    for (let round = 0; round < 20; round += 1) {
      const services = randomServices(random, { count: 6 });
      const mixed = [...services, ...broken].toSorted(() => random() - 0.5);
      expect(JSON.stringify(generate(mixed))).toBe(JSON.stringify(generate(services)));
    }
  });

  // On an address of their own: what they match is closed, and the matcher has to say so.
  const unready = (port: number) => [
    externalService(
      `{ match: [{ type: IP, value: 10.9.9.1, port: ${port}, protocol: http }], destination: { type: Extension, extension: { type: Unheard } } }`,
      { name: 'plugin' },
    ),
    externalService(
      `{ match: [{ type: IP, value: 10.9.9.2, port: ${port} }], destination: { type: Regular, endpoints: [{ address: a.b }], tls: { caCert: { secret: gone } } } }`,
      { name: 'tls' },
    ),
  ];

  test('services that are not ready among others -> clusters, secrets and chains of the others are the same bytes', () => {
    const random = randomOf(9);
    for (let round = 0; round < 20; round += 1) {
      const services = randomServices(random, { count: 6 });
      const mixed = [...services, ...unready(pick(random, ports))].toSorted(() => random() - 0.5);
      const [alone, among] = [generate(services), generate(mixed)];
      const whole = (list: typeof alone) =>
        JSON.stringify(list.filter(({ type }) => type === 'cluster' || type === 'secret'));
      expect(whole(among)).toBe(whole(alone));
      const chains = new Set(chainsIn(among));
      for (const chain of chainsIn(alone)) expect(chains).toContain(chain);
    }
  });

  test('a missing secret or plugin -> what the service matches is closed, and never goes out as it came', () => {
    const regular =
      'destination: { type: Regular, endpoints: [{ address: api.example.com, port: 443 }], tls: { caCert: { secret: gone } } }';
    const byHost = `{ match: [{ type: Domain, value: api.example.com, port: 80, protocol: http }, { type: CIDR, value: 10.1.0.0/16, port: 80 }, { type: InternalVIP, value: a.ext, port: 80, protocol: http }, { type: CIDR, value: 10.1.0.0/16, port: 9000 }], ${regular} }`;
    const model = new EnvoyModel(
      generate([externalService(byHost, { name: 'api', vips: { 'a.ext': '242.0.0.1' } }), ...unready(80)]),
    );
    const ends = (to: string, port: number, more: { host?: string } = {}) => {
      const application = more.host === undefined ? {} : { application: 'http/1.1' as const };
      const at = { address: parseIp(to)!, port, transport: 'raw_buffer' as const };
      return model.connect(testInput.ports.inspected, { ...at, ...application, ...more });
    };
    const closed = { kind: 'clusters', names: ['blackhole'] };
    expect(ends('9.9.9.9', 80, { host: 'api.example.com' })).toEqual(closed);
    expect(ends('10.1.2.3', 80, { host: 'other.org' })).toEqual(closed);
    expect(ends('10.1.2.3', 80)).toEqual(closed);
    expect(ends('10.1.2.3', 9000)).toEqual(closed);
    expect(ends('242.0.0.1', 80, { host: 'other.org' })).toEqual(closed);
    expect(ends('10.9.9.1', 80, { host: 'other.org' })).toEqual(closed);
    expect(ends('10.9.9.2', 80)).toEqual(closed);
    expect(ends('9.9.9.9', 80, { host: 'other.org' })).toEqual({ kind: 'clusters', names: ['passthrough'] });
  });

  test('a plugin that throws, or makes nothing -> a reason for that one; the others give the same bytes as alone', () => {
    const odd = (type: string, emit: () => never): ExtensionPlugin => ({ type, protocols: ['http'], config: {}, emit });
    const throws = odd('Throws', () => {
      throw new Error('cannot');
    });
    const empty = odd('Empty', (() => undefined) as never);
    const plugins = new Map([throws, empty].map((one) => [one.type, one]));
    const services = randomServices(randomOf(3), { count: 6 });
    const broken = [...plugins.keys()].map((type) =>
      externalService(
        `{ match: [{ type: IP, value: 10.9.9.9, port: 80, protocol: http }], destination: { type: Extension, extension: { type: ${type} } } }`,
        { name: type.toLowerCase() },
      ),
    );
    const input = { ...testInput, plugins };
    const bytes = (list: typeof services) =>
      JSON.stringify(externalResources({ ...input, services: list }).filter(({ type }) => type === 'cluster'));
    expect(bytes([...broken, ...services])).toBe(bytes(services));
    expect(broken.map((one) => targetsOf(one, input))).toMatchObject([
      { kind: 'none', reason: 'PluginFailed', problems: ['extension.type: Throws failed: cannot'] },
      { kind: 'none', reason: 'PluginFailed', problems: ['extension.type: Empty made no cluster'] },
    ]);
  });

  test.each(['x:99999', 'x:0', '-:443', 'a..b:443', `${'a'.repeat(64)}.b:443`])(
    'Lambda at %s, which Envoy would refuse -> refused by its plugin',
    (endpoint) => {
      const config = `{ arn: "arn:aws:lambda:us-west-2:123456789012:function:f", endpoint: "${endpoint}" }`;
      const service = externalService(
        `{ match: [{ type: IP, value: 10.0.0.1, port: 80, protocol: http }], destination: { type: Extension, extension: { type: Lambda, config: ${config} } } }`,
      );
      expect(targetsOf(service, testInput)).toMatchObject({ kind: 'none', reason: 'PluginConfigInvalid' });
    },
  );

  test('[004-38] the httpbin example of the seed -> clusters httpbin_80 and httpbin_443', () => {
    const httpbin = externalService(
      '{ match: [{ type: Domain, value: httpbin.com, port: 80, protocol: http2 }, { type: Domain, value: httpbin.com, port: 443, protocol: tls }], destination: { type: Passthrough } }',
      { name: 'httpbin' },
    );
    expect(namesOf([httpbin], 'cluster')).toEqual(['blackhole', 'httpbin_443', 'httpbin_80', 'passthrough']);
  });

  test('two protocols on one port, two origins, hostnames beside addresses -> cluster names stay apart', () => {
    const spec =
      '{ match: [{ type: IP, value: 10.0.0.1, port: 80, protocol: http }, { type: IP, value: 10.0.0.2, port: 80 }], destination: { type: Regular, endpoints: [{ address: a.b }, { address: 127.0.0.1 }] } }';
    const both = [externalService(spec, { name: 'x' }), externalService(spec, { name: 'x', origin: 'broker' })];
    expect(namesOf(both, 'cluster')).toEqual([
      'blackhole',
      ...['broker/x_80_bytes_dns', 'broker/x_80_bytes_static', 'broker/x_80_dns', 'broker/x_80_static'],
      'passthrough',
      ...['x_80_bytes_dns', 'x_80_bytes_static', 'x_80_dns', 'x_80_static'],
    ]);
  });

  const match = (value: string, protocol: string) => `{ type: IP, value: ${value}, port: 80, protocol: ${protocol} }`;
  const vip = '{ type: InternalVIP, value: a.ext, port: 80, protocol: http }';
  const withMatches = (...matches: readonly string[]) =>
    generate([
      externalService(
        `{ match: [${matches.join(', ')}], destination: { type: Regular, endpoints: [{ address: a.b }] } }`,
        { name: 'x', vips: { 'a.ext': '242.0.0.1' } },
      ),
    ]);

  test.each([
    ['of another protocol added', [vip, match('10.0.0.1', 'http')], [match('10.0.0.2', 'tcp')]],
    ['of two more protocols added', [match('10.0.0.1', 'http')], [match('10.0.0.2', 'tcp'), match('10.0.0.3', 'grpc')]],
    ['of the same protocol added', [vip], [match('10.0.0.2', 'http')]],
  ])('a match %s, or taken away again -> chains and clusters of the others keep name and text', (_how, own, more) => {
    const [before, after] = [withMatches(...own), withMatches(...own, ...more)];
    const chains = chainsIn(after);
    for (const chain of chainsIn(before)) expect(chains).toContain(chain);
    const clusters = (list: typeof before) =>
      list.flatMap(({ type, body }) => (type === 'cluster' ? [JSON.stringify(body)] : []));
    for (const cluster of clusters(before)) expect(clusters(after)).toContain(cluster);
  });

  test('the first match of a port goes, so that a cluster is renamed -> chains of requests do not change', () => {
    const rest = [vip, match('10.0.0.1', 'http')];
    const requests = (list: ReturnType<typeof withMatches>) => chainsIn(list).filter((chain) => chain.includes('rds'));
    const [before, after] = [withMatches(match('10.0.0.2', 'tcp'), ...rest), withMatches(...rest)];
    expect(requests(before).length).toBeGreaterThan(1);
    expect(requests(before)).toEqual(expect.arrayContaining(requests(after)));
  });

  test('a rule is added -> chains that were there keep their text, and nothing else of the listener changes', () => {
    const random = randomOf(11);
    for (let round = 0; round < 30; round += 1) {
      const services = randomServices(random, { count: 6 });
      const [before, after] = [services.slice(0, 5), services].map((set) =>
        generate(set).filter(({ type }) => type === 'listener'),
      );
      for (const [at, { body }] of before!.entries()) {
        const next = after![at]!.body;
        const chains = new Map((next['filter_chains'] as { name: string }[]).map((chain) => [chain.name, chain]));
        for (const chain of body['filter_chains'] as { name: string }[])
          if (chains.has(chain.name)) expect(chains.get(chain.name)).toEqual(chain);
        const rest = ({ filter_chains: _chains, filter_chain_matcher: _matcher, ...others }: typeof body) => others;
        expect(rest(next)).toEqual(rest(body));
      }
    }
  });

  test('certificates and keys -> in secrets alone', () => {
    const tls = externalService(
      '{ match: [{ type: IP, value: 10.0.0.1, port: 80 }], destination: { type: Regular, endpoints: [{ address: a.b }], tls: { verification: { skip: true } } } }',
    );
    expect(generate([tls]).some(({ type }) => type === 'secret')).toBe(false);
  });
});
