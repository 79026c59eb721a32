// Every rule by which a MeshExternalService is refused, with its field, and all of them at once.

import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { KubernetesObject } from '../../../kube/objects/object.ts';
import type { MeshExternalService } from '../../kinds/mesh-external-service.ts';
import { rulesOf } from '../rule.ts';
import { externalServiceErrors, externalServiceWarnings } from './external-service.ts';
import { hostnameGeneratorErrors } from './hostname-generator.ts';

function object(spec: string, metadata: Record<string, unknown> = {}): KubernetesObject {
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'MeshExternalService',
    metadata: { name: 'example', namespace: 'portolan-system', ...metadata },
    spec: parse(spec),
  } as KubernetesObject;
}

const vip = '{ type: InternalVIP, value: example.ext.svc.local, port: 80, protocol: http }';
const regular = (more: string, match = vip) =>
  `{ match: [${match}], destination: { type: Regular, endpoints: [{ address: example.com }], ${more} } }`;
const tls = (fields: string, match = vip) => regular(`tls: { ${fields} }`, match);
const ca = 'caCert: { inlineString: PEM }';

/** Fields that are refused, and part of the reason. */
const refused: readonly [situation: string, spec: string, field: string, why: string][] = [
  ['no match', '{ match: [] }', 'spec.match', 'at least one match'],
  ['match is null', '{ match: null }', 'spec.match', 'Required value'],
  ['no type', '{ match: [{ value: 10.0.0.1, port: 1 }] }', 'spec.match[0].type', 'Required value'],
  ['a value of 7', '{ match: [{ type: IP, value: 7, port: 1 }] }', 'spec.match[0].value', 'must be text'],
  [
    'an endpoint at 7',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: 7 }] } }`,
    'spec.destination.endpoints[0].address',
    'must be text',
  ],
  [
    'an endpoint that is no hostname',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: a_b.example }] } }`,
    'spec.destination.endpoints[0].address',
    'lower case letters',
  ],
  [
    'an extension without a type',
    `{ match: [${vip}], destination: { type: Extension, extension: {} } }`,
    'spec.destination.extension.type',
    'Required value',
  ],
  ['a CA of 7', tls('caCert: { inlineString: 7 }'), 'spec.destination.tls.caCert.inlineString', 'must be text'],
  ['a match of null', '{ match: [null] }', 'spec.match[0]', 'must be an object'],
  [
    'an endpoint of null',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: a.b }, null] } }`,
    'spec.destination.endpoints[1]',
    'must be an object',
  ],
  [
    'a label of 64 characters',
    `{ match: [{ type: Domain, value: ${'a'.repeat(64)}.example, port: 1, protocol: tls }] }`,
    'spec.match[0].value',
    'no more than 63 characters',
  ],
  [
    'a label of 64 characters behind a wildcard',
    `{ match: [{ type: Domain, value: "*.${'a'.repeat(64)}.example", port: 1, protocol: tls }] }`,
    'spec.match[0].value',
    'no more than 63 characters',
  ],
  ['an unknown type', '{ match: [{ type: Regex, value: a.b, port: 1 }] }', 'spec.match[0].type', 'Unsupported value'],
  ['no port', '{ match: [{ type: IP, value: 10.0.0.1 }] }', 'spec.match[0].port', 'Required value'],
  ['port 0', '{ match: [{ type: IP, value: 10.0.0.1, port: 0 }] }', 'spec.match[0].port', 'between 1 and 65535'],
  [
    'port 65536',
    '{ match: [{ type: IP, value: 10.0.0.1, port: 65536 }] }',
    'spec.match[0].port',
    'between 1 and 65535',
  ],
  [
    'an unknown protocol',
    '{ match: [{ type: IP, value: 10.0.0.1, port: 1, protocol: udp }] }',
    'spec.match[0].protocol',
    'Unsupported value',
  ],
  [
    'a Domain without value',
    '{ match: [{ type: Domain, port: 1, protocol: tls }] }',
    'spec.match[0].value',
    'Domain needs',
  ],
  [
    'an address as domain [004-10]',
    '{ match: [{ type: Domain, value: 10.0.0.1, port: 1, protocol: tls }] }',
    'spec.match[0].value',
    'not an address',
  ],
  ['a bad address', '{ match: [{ type: IP, value: 10.0.0.256, port: 1 }] }', 'spec.match[0].value', 'IPv4 or IPv6'],
  [
    'a range as IP [004-10]',
    '{ match: [{ type: IP, value: 10.0.0.0/8, port: 1 }] }',
    'spec.match[0].value',
    'IPv4 or IPv6',
  ],
  [
    'an IP as range [004-10]',
    '{ match: [{ type: CIDR, value: 10.0.0.1, port: 1 }] }',
    'spec.match[0].value',
    'a range such as',
  ],
  [
    'a mapped IPv4',
    '{ match: [{ type: IP, value: "::ffff:10.0.0.1", port: 1 }] }',
    'spec.match[0].value',
    'IPv4 address that',
  ],
  [
    'a wildcard in the middle',
    '{ match: [{ type: Domain, value: a.*.b, port: 1, protocol: tls }] }',
    'spec.match[0].value',
    "a wildcard must be '*.'",
  ],
  [
    'a partial wildcard',
    '{ match: [{ type: Domain, value: "*a.b", port: 1, protocol: tls }] }',
    'spec.match[0].value',
    "a wildcard must be '*.'",
  ],
  [
    'a wildcard with Regular [004-47]',
    regular('', '{ type: Domain, value: "*.a.b", port: 1, protocol: tls }'),
    'spec.match[0].value',
    'only possible with destination type Passthrough',
  ],
  [
    'a wildcard as InternalVIP',
    regular('', '{ type: InternalVIP, value: "*.a.b", port: 1 }'),
    'spec.match[0].value',
    'lower case letters',
  ],
  [
    'a match twice',
    '{ match: [{ type: IP, value: 10.0.0.1, port: 1 }, { type: IP, value: 10.0.0.1, port: 1, protocol: tcp }] }',
    'spec.match[1]',
    'Duplicate value',
  ],
  ['an InternalVIP with Passthrough', `{ match: [${vip}] }`, 'spec.destination.type', 'nowhere'],
  [
    'an unknown destination',
    `{ match: [${vip}], destination: { type: Void } }`,
    'spec.destination.type',
    'Unsupported',
  ],
  [
    'Passthrough with endpoints [004-19]',
    '{ match: [{ type: IP, value: 10.0.0.1, port: 1 }], destination: { endpoints: [{ address: a.b }] } }',
    'spec.destination.endpoints',
    'may not be set with destination type Passthrough',
  ],
  [
    'Passthrough with tls [004-19]',
    '{ match: [{ type: IP, value: 10.0.0.1, port: 1 }], destination: { tls: {} } }',
    'spec.destination.tls',
    'may not be set',
  ],
  [
    'Passthrough with extension [004-19]',
    '{ match: [{ type: IP, value: 10.0.0.1, port: 1 }], destination: { extension: { type: Lambda } } }',
    'spec.destination.extension',
    'may not be set',
  ],
  [
    'Regular with extension [004-18]',
    regular('extension: { type: Lambda }'),
    'spec.destination.extension',
    'may not be set',
  ],
  [
    'Regular without endpoints',
    `{ match: [${vip}], destination: { type: Regular } }`,
    'spec.destination.endpoints',
    'at least one',
  ],
  [
    'Extension with endpoints [004-20]',
    `{ match: [${vip}], destination: { type: Extension, extension: { type: X }, endpoints: [{ address: a.b }] } }`,
    'spec.destination.endpoints',
    'may not be set',
  ],
  [
    'Extension with tls [004-20]',
    `{ match: [${vip}], destination: { type: Extension, extension: { type: X }, tls: {} } }`,
    'spec.destination.tls',
    'may not be set',
  ],
  [
    'Extension without its section',
    `{ match: [${vip}], destination: { type: Extension } }`,
    'spec.destination.extension',
    'needs it',
  ],
  [
    'an endpoint without address',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ port: 1 }] } }`,
    'spec.destination.endpoints[0].address',
    'Required value',
  ],
  [
    'an endpoint with a bad port',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: a.b, port: 99999 }] } }`,
    'spec.destination.endpoints[0].port',
    'between 1 and 65535',
  ],
  [
    'an endpoint twice',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: a.b }, { address: A.b }] } }`,
    'spec.destination.endpoints[1]',
    'Duplicate value',
  ],
  [
    'a relative socket',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: "unix://...." }] } }`,
    'spec.destination.endpoints[0].address',
    'an absolute path',
  ],
  [
    'a long socket',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: "unix:///${'x'.repeat(107)}" }] } }`,
    'spec.destination.endpoints[0].address',
    'at most 107 bytes',
  ],
  [
    'a socket with a port',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: "unix:///x", port: 1 }] } }`,
    'spec.destination.endpoints[0].port',
    'has no port',
  ],
  ['TLS without CA', tls('enabled: true'), 'spec.destination.tls.caCert', 'cannot be verified'],
  ['TLS, section alone', tls(''), 'spec.destination.tls.caCert', 'cannot be verified'],
  [
    'min above max',
    tls(`${ca}, version: { min: TLSv1_3, max: TLSv1_2 }`),
    'spec.destination.tls.version.min',
    'above version.max',
  ],
  [
    'an unknown version',
    tls(`${ca}, version: { min: TLS_12 }`),
    'spec.destination.tls.version.min',
    'Unsupported value',
  ],
  [
    'a certificate without key',
    tls(`${ca}, clientCert: { secret: a }`),
    'spec.destination.tls.clientKey',
    'go together',
  ],
  [
    'a key without certificate',
    tls(`${ca}, clientKey: { secret: a }`),
    'spec.destination.tls.clientCert',
    'go together',
  ],
  ['an empty source [004-34]', tls('caCert: {}'), 'spec.destination.tls.caCert', 'one of inline'],
  ['two sources [004-34]', tls('caCert: { inlineString: a, secret: b }'), 'spec.destination.tls.caCert', 'only one of'],
  [
    "a CA beside the system's",
    tls('caCert: { inlineString: a, system: true }'),
    'spec.destination.tls.caCert',
    'only one of',
  ],
  ["no CA, nor the system's", tls('caCert: { system: false }'), 'spec.destination.tls.caCert', 'one of inline'],
  [
    'a client certificate of the system',
    tls(`${ca}, clientCert: { system: true }, clientKey: { secret: a }`),
    'spec.destination.tls.clientCert',
    'one of inline',
  ],
  ['inline as a number', tls('caCert: { inline: 123 }'), 'spec.destination.tls.caCert.inline', 'must be text'],
  [
    'inline that is no base64',
    tls('caCert: { inline: "%%%" }'),
    'spec.destination.tls.caCert.inline',
    'must be base64',
  ],
  ['a bad reference', tls('caCert: { secret: "a/b/c" }'), 'spec.destination.tls.caCert.secret', 'name of a Secret'],
  [
    'a bad name to accept',
    tls(`${ca}, verification: { subjectAltNames: ["not a name"] }`),
    'spec.destination.tls.verification.subjectAltNames[0]',
    'a DNS name, an address or a URI',
  ],
  [
    'TLS to a socket without names',
    `{ match: [${vip}], destination: { type: Regular, endpoints: [{ address: "unix:///x" }], tls: { ${ca} } } }`,
    'spec.destination.tls.verification.subjectAltNames',
    'has no name of its own',
  ],
  [
    'TLS in TLS',
    tls(ca, '{ type: IP, value: 10.0.0.1, port: 443, protocol: tls }'),
    'spec.destination.tls',
    'TLS inside TLS',
  ],
];

describe('external service: what is refused', () => {
  test.each(refused)('%s -> refused at its field', (_situation, spec, field, why) => {
    const errors = externalServiceErrors(object(spec));
    expect(errors.map((error) => error.field)).toEqual([field]);
    expect(errors[0]!.message).toContain(why);
  });

  test('10,000 domains by tcp, a range beside them -> checked and turned into rules in one pass', () => {
    const domain = (i: number) => ({ type: 'Domain', value: `a${i}.b.c`, port: 1, protocol: 'tcp' }) as const;
    const range = { type: 'IP', value: '10.0.0.1', port: 1 } as const;
    const match = [...Array.from({ length: 10_000 }, (_, i) => domain(i)), range];
    const service = { ...object('{ match: [] }'), spec: { match } } as MeshExternalService;
    const started = process.cpuUsage();
    expect(externalServiceErrors(service)).toEqual([]);
    expect(rulesOf(service)).toHaveLength(1);
    // Pair by pair it takes seconds.
    expect(process.cpuUsage(started).user).toBeLessThan(1_500_000);
  });

  test('a name that is no label -> refused', () => {
    const good = '{ match: [{ type: IP, value: 10.0.0.1, port: 1 }] }';
    expect(externalServiceErrors(object(good, { name: '1a' }))[0]!.field).toBe('metadata.name');
    expect(externalServiceErrors(object(good, { name: 'a.broker' }))[0]!.field).toBe('metadata.name');
    const copy = { name: 'a.broker', labels: { 'portolan.dev/origin': 'broker' } };
    expect(externalServiceErrors(object(good, copy))).toEqual([]);
  });

  test('several mistakes -> all of them at once', () => {
    const spec = `{
      match: [{ type: IP, value: x, port: 0 }, { type: Domain, value: "*.a", port: 1 }],
      destination: { type: Regular, extension: { type: L }, endpoints: [{ address: "unix:x" }], tls: { clientKey: { inline: 1 } } } }`;
    expect(externalServiceErrors(object(spec)).map(({ field }) => field)).toEqual([
      ...['spec.match[0].value', 'spec.match[0].port', 'spec.match[1].value'],
      ...[
        'spec.destination.extension',
        'spec.destination.endpoints[0].address',
        'spec.destination.tls.clientKey.inline',
      ],
      ...['spec.destination.tls.caCert', 'spec.destination.tls.clientCert'],
    ]);
  });

  test('contents of keys -> never repeated', () => {
    const spec = tls('caCert: { inline: "hush-hush!" }, clientKey: { inline: 123456 }');
    expect(JSON.stringify(externalServiceErrors(object(spec)))).not.toMatch(/hush|123456/);
  });

  test.each([
    'null',
    '7',
    '[]',
    '{ match: 7, destination: [] }',
    '{ match: [null, 7, {}], destination: { endpoints: 7, tls: [] } }',
  ])('an object of odd shape: %s -> errors, no exception', (spec) =>
    expect(externalServiceErrors(object(spec)).length).toBeGreaterThan(0),
  );
});

describe('external service: what is accepted', () => {
  test.each([
    ['min and max the same', tls(`${ca}, version: { min: TLSv1_2, max: TLSv1_2 }`)],
    ['TLS_AUTO as max', tls(`${ca}, version: { min: TLSv1_3, max: TLS_AUTO }`)],
    ['URI and wildcard names', tls(`${ca}, verification: { subjectAltNames: ["spiffe://a/b", "*.a.b", 10.0.0.1] }`)],
    ['skip without CA', tls('verification: { skip: true }')],
    ["the system's CAs", tls('caCert: { system: true }')],
    ['a Secret and its key', tls('caCert: { secret: pki/root.pem }')],
    ['an unknown extension', `{ match: [${vip}], destination: { type: Extension, extension: { type: Unheard } } }`],
    ['a generated hostname', regular('', '{ type: InternalVIP, port: 80, protocol: http }')],
    [
      'a wildcard with Passthrough',
      '{ match: [{ type: Domain, value: "*.eu.aws.cloud", port: 9092, protocol: tls }] }',
    ],
    ['a bad TLS section that is off', regular('tls: { enabled: false, clientKey: { secret: a } }')],
  ])('%s -> accepted', (_situation, spec) => expect(externalServiceErrors(object(spec))).toEqual([]));

  test('10,000 domains by tcp, each on a port of its own -> work in proportion to their number', () => {
    const match = Array.from({ length: 10_000 }, (_, at) => ({
      type: 'Domain',
      value: `h${at}.example`,
      port: at + 1,
    }));
    const large = { ...object('{}'), spec: { match, destination: { type: 'Passthrough' } } };
    const startMs = performance.now();
    expect(externalServiceErrors(large)).toEqual([]);
    expect(externalServiceWarnings(large).length).toBe(10_000);
    const vips = match.map(({ value }) => ({ hostname: value, ip: '242.0.0.1' }));
    expect(rulesOf({ ...large, status: { vips } } as unknown as MeshExternalService)).toHaveLength(20_000);
    // Several seconds when each was compared with all the others.
    expect(performance.now() - startMs).toBeLessThan(1_500);
  });

  test.each([
    ['only a domain', '{ match: [{ type: Domain, value: httpbin.com, port: 80 }] }'],
    [
      'a domain, an address on another port',
      '{ match: [{ type: Domain, value: a.com, port: 80 }, { type: IP, value: 10.0.0.1, port: 81 }] }',
    ],
  ])('tcp with %s -> accepted, with a warning that it takes the whole port [004-13]', (_situation, spec) => {
    expect(externalServiceErrors(object(spec))).toEqual([]);
    expect(externalServiceWarnings(object(spec))).toEqual([
      'spec.match[0]: takes all traffic of port 80, whatever its destination: tcp cannot tell domains apart; use tls or http, or add a CIDR or IP match',
    ]);
  });

  test.each([
    [
      'a domain by tcp beside an address',
      '{ match: [{ type: Domain, value: a.com, port: 80 }, { type: IP, value: 10.0.0.1, port: 80 }] }',
      'spec.match[0]: ignored, tcp cannot tell domains apart; the CIDR and IP matches of port 80 count',
    ],
    ['TLS off', regular('tls: { enabled: false, allowRenegotiation: true }'), 'its other fields are not used'],
    [
      'skip with names [004-29]',
      tls(`${ca}, verification: { skip: true, subjectAltNames: [a.b] }`),
      'subjectAltNames have no effect',
    ],
  ])('%s -> accepted, with a warning', (_situation, spec, warning) => {
    expect(externalServiceErrors(object(spec))).toEqual([]);
    expect(externalServiceWarnings(object(spec))[0]).toContain(warning);
  });
});

describe('hostname generator', () => {
  test.each([
    ['{ targetRef: { kind: MeshExternalService }, template: "{{ name }}.a.b" }', []],
    ['{ selector: { matchLabels: {} }, template: "{{ label \\"x\\" }}.a.b" }', []],
    ['{ template: "{{ name }}.a.b" }', ['spec.targetRef']],
    ['{ targetRef: { kind: Service }, template: "{{ name }}.a" }', ['spec.targetRef.kind']],
    ['{ selector: {}, template: "{{ zone }}.a.b" }', ['spec.template']],
    ['{ selector: {}, template: "{{ name }.a.b" }', ['spec.template']],
    ['{ selector: {}, template: "name }}.a.b" }', ['spec.template']],
    ['null', ['spec.template', 'spec.targetRef']],
  ])('%s -> errors at %j', (spec, fields) => {
    expect(hostnameGeneratorErrors(object(spec)).map(({ field }) => field)).toEqual(fields);
  });
});
