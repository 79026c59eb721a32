import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StatusError } from '../model/status.ts';
import { arbitraryOf, ProtobufEncoder } from '../testing/protobuf-encoder.ts';
import { decodeProtobufBody } from './protobuf.ts';
import { formatDuration } from './protobuf-special.ts';

// Recorded from kubectl 1.33: the bodies it sends and what it means by them.
const recorded: Readonly<Record<string, readonly [string, unknown]>> = {
  'create namespace shop': [
    'azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhwKFAoEc2hvcBIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA==',
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' }, spec: {}, status: {} },
  ],
  'create service clusterip checkout --tcp=80:8080 --tcp=443:https': [
    'azhzAAoNCgJ2MRIHU2VydmljZRKgAQotCghjaGVja291dBIAGgRzaG9wIgAqADIAOABCAFoPCgNhcHASCGNoZWNrb3V0EmsKGwoHODAtODA4MBIDVENQGFAiBwgAEJA/GgAoAAoiCgk0NDMtaHR0cHMSA1RDUBi7AyILCAEQABoFaHR0cHMoABIPCgNhcHASCGNoZWNrb3V0GgAiCUNsdXN0ZXJJUDoAQgBSAFoAYABoABoCCgAaACIA',
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'checkout', namespace: 'shop', labels: { app: 'checkout' } },
      spec: {
        ports: [
          { name: '80-8080', protocol: 'TCP', port: 80, targetPort: 8080 },
          { name: '443-https', protocol: 'TCP', port: 443, targetPort: 'https' },
        ],
        selector: { app: 'checkout' },
        type: 'ClusterIP',
      },
      status: { loadBalancer: {} },
    },
  ],
  'create deployment web --image=nginx:1.27 --replicas=3 --port=80': [
    'azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50Er0BCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEosBCAMSDAoKCgNhcHASA3dlYhpxChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViElESMwoFbmdpbngSCm5naW54OjEuMjcqADIKCgAQABhQIgAqAEIAagByAIABAIgBAJABAKIBABoAMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAiAgoAKAA4ABoMCAAQABgAIAAoADgAGgAiAA==',
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: { containers: [{ name: 'nginx', image: 'nginx:1.27', ports: [{ containerPort: 80 }], resources: {} }] },
        },
        strategy: {},
      },
      status: {},
    },
  ],
  'create secret generic s --from-literal=user=ann --from-literal=key=<bytes 1 and 2>': [
    'azhzAAoMCgJ2MRIGU2VjcmV0Ei0KEQoBcxIAGgAiACoAMgA4AEIAEgkKA2tleRICAQISCwoEdXNlchIDYW5uGgAaACIA',
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { key: 'AQI=', user: 'YW5u' } },
  ],
  'create token sa --audience=x --duration=1h': [
    'azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIgChAKABIAGgAiACoAMgA4AEIAEgYKAXggkBwaBAoAEgAaACIA',
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: { audiences: ['x'], expirationSeconds: 3600 },
      status: { token: '' },
    },
  ],
  'auth can-i get pods': [
    'azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPAoQCgASABoAIgAqADIAOABCABIeChwKB2RlZmF1bHQSA2dldBoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=',
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      metadata: {},
      spec: { resourceAttributes: { namespace: 'default', verb: 'get', resource: 'pods' } },
      status: { allowed: false },
    },
  ],
};

const encoder = new ProtobufEncoder();

function decode(base64: string): unknown {
  return decodeProtobufBody(Buffer.from(base64, 'base64'), valuesMax).object;
}

function refusal(bytes: Uint8Array): string {
  try {
    decodeProtobufBody(bytes, valuesMax);
  } catch (error) {
    expect(error).toBeInstanceOf(StatusError);
    expect((error as StatusError).reason).toBe('BadRequest');
    return (error as Error).message;
  }
  return '';
}

const valuesMax = 50_000;

describe('protobuf: what kubectl sends', () => {
  test.each(Object.keys(recorded))('kubectl %s -> the object it means', (command) => {
    const [base64, object] = recorded[command]!;
    expect(decode(base64)).toEqual(object);
  });
});

describe('protobuf: any object that another encoder wrote -> the same object', () => {
  const kinds = [
    ['v1', 'Service', 'core.v1.Service'],
    ['v1', 'Pod', 'core.v1.Pod'],
    ['v1', 'Node', 'core.v1.Node'],
    ['v1', 'Secret', 'core.v1.Secret'],
    ['v1', 'Event', 'core.v1.Event'],
    ['events.k8s.io/v1', 'Event', 'events.v1.Event'],
    ['apps/v1', 'StatefulSet', 'apps.v1.StatefulSet'],
    ['discovery.k8s.io/v1', 'EndpointSlice', 'discovery.v1.EndpointSlice'],
    ['coordination.k8s.io/v1', 'Lease', 'coordination.v1.Lease'],
    ['rbac.authorization.k8s.io/v1', 'ClusterRole', 'rbac.v1.ClusterRole'],
    ['authorization.k8s.io/v1', 'SubjectAccessReview', 'authorization.v1.SubjectAccessReview'],
    ['authentication.k8s.io/v1', 'TokenReview', 'authentication.v1.TokenReview'],
    ['apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'apiextensions.v1.CustomResourceDefinition'],
    ['apps/v1', 'DeleteOptions', 'meta.v1.DeleteOptions'],
  ] as const;

  test.each(kinds)('%s %s', (apiVersion, kind, message) => {
    fc.assert(
      fc.property(arbitraryOf(message), (object) => {
        const raw = encoder.encode(message, object as Record<string, unknown>);
        const decoded = decodeProtobufBody(encoder.body(apiVersion, kind, raw), valuesMax);
        expect(decoded.object).toEqual({ apiVersion, kind, ...(object as object) });
      }),
      { numRuns: 40 },
    );
  });
});

describe('protobuf: odd but well formed', () => {
  const field = (number: number, bytes: Uint8Array) =>
    Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);

  test('a packed list of numbers -> its items', () => {
    const groups = field(5, Buffer.concat([field(4, Buffer.from([1, 0x96, 1]))]));
    const raw = field(2, field(14, groups.subarray(2)));
    const { object } = decodeProtobufBody(encoder.body('v1', 'Pod', raw), valuesMax);
    expect(object['spec']).toEqual({ securityContext: { supplementalGroups: [1, 150] } });
  });

  test('a message in two pieces -> put together', () => {
    const raw = Buffer.concat([field(1, field(1, Buffer.from('a'))), field(1, field(3, Buffer.from('b')))]);
    expect(decodeProtobufBody(encoder.body('v1', 'ConfigMap', raw), valuesMax).object.metadata).toEqual({
      name: 'a',
      namespace: 'b',
    });
  });

  test('fields nobody knows, of every wire type -> skipped', () => {
    const unknown = Buffer.from([
      0xf8, 0x3f, 1, 0xf9, 0x3f, 1, 2, 3, 4, 5, 6, 7, 8, 0xfa, 0x3f, 1, 65, 0xfd, 0x3f, 1, 2, 3, 4,
    ]);
    const raw = Buffer.concat([unknown, field(1, field(1, Buffer.from('a')))]);
    expect(decodeProtobufBody(encoder.body('v1', 'ConfigMap', raw), valuesMax).object.metadata).toEqual({ name: 'a' });
  });

  test('a map key __proto__ -> a key like any other', () => {
    const entry = Buffer.concat([field(1, Buffer.from('__proto__')), field(2, Buffer.from('x'))]);
    const { object } = decodeProtobufBody(encoder.body('v1', 'ConfigMap', field(2, entry)), valuesMax);
    expect(Object.keys(object['data'] as object)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });

  test.each([
    [0, '0s'],
    [15e6, '15ms'],
    [1500, '1.5µs'],
    [3.5e9, '3.5s'],
    [-90e9, '-1m30s'],
    [3723e9, '1h2m3s'],
  ])('a duration of %d ns -> %s', (nanoseconds, text) => {
    expect(formatDuration(nanoseconds)).toBe(text);
  });
});

describe('protobuf: malformed bytes -> BadRequest that says what is wrong', () => {
  const body = (raw: number[]) => encoder.body('v1', 'Namespace', Uint8Array.from(raw));
  test.each([
    ['no magic', Buffer.from('{}'), 'does not start with the four bytes'],
    ['nothing at all', new Uint8Array(), 'does not start with the four bytes'],
    [
      'an unknown kind',
      encoder.body('v1', 'Nonsense', new Uint8Array()),
      'kind "Nonsense" of version "v1" cannot be read',
    ],
    ['a custom kind', encoder.body('portolan.dev/v1alpha1', 'Peer', new Uint8Array()), 'send it as application/json'],
    [
      'a group that only looks like apps',
      encoder.body('apps.example.org/v1', 'Deployment', new Uint8Array()),
      'cannot be read',
    ],
    ['an encoding', encoder.body('v1', 'Namespace', new Uint8Array(), 'gzip'), 'encoded as "gzip"'],
    ['an end in the middle', body([0x0a]), 'Namespace v1 at metadata: it ends in the middle of a value'],
    ['a length beyond the end', body([0x0a, 9, 0]), 'metadata: a value of 9 bytes is announced, 1 are left'],
    ['a wrong wire type', body([0x08, 1]), 'metadata: a length-delimited value is expected, a varint one found'],
    ['a wrong wire type deep inside', body([0x0a, 2, 0x08, 1]), 'metadata.name: a length-delimited value is expected'],
    ['field number 0', body([0x02, 0]), '0 is not a field number'],
    ['a wire type out of use', body([0xfb, 0x3f]), 'wire type 3 is not in use'],
    ['an endless varint', body([0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]), 'more than ten bytes'],
    ['a string that is not UTF-8', body([0x0a, 3, 0x0a, 1, 0xff]), 'metadata.name: a string is not UTF-8'],
    ['a date beyond all years', body([0x0a, 10, 0x42, 8, 0x08, 255, 255, 255, 255, 255, 255, 1]), 'is not a date'],
  ])('%s', (_situation, bytes, text) => {
    expect(refusal(bytes)).toContain(text);
  });

  test('schemas that contain schemas without end -> refused, not followed', () => {
    let schema: Buffer = Buffer.alloc(0);
    const wrap = (tag: number[], bytes: Buffer) => Buffer.concat([Buffer.from(tag), varint(bytes.length), bytes]);
    for (let depth = 0; depth < 5000; depth += 1) schema = wrap([0xe2, 0x01], schema);
    const raw = wrap([0x12], wrap([0x3a], wrap([0x22], wrap([0x0a], schema))));
    const bytes = encoder.body('apiextensions.k8s.io/v1', 'CustomResourceDefinition', raw);
    expect(refusal(bytes)).toContain('more than 200 deep');
  });

  test('any bytes at all -> an object or BadRequest, never anything else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.constantFrom('Pod', 'Service', 'Secret'), (raw, kind) => {
        refusal(encoder.body('v1', kind, raw));
        refusal(Buffer.concat([Buffer.from('k8s\0'), raw]));
      }),
      { numRuns: 2000 },
    );
  });

  test('a real body with some bytes changed or cut off -> an object or BadRequest, never anything else', () => {
    const bodies = Object.values(recorded).map(([base64]) => Buffer.from(base64, 'base64'));
    const change = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(fc.constantFrom(...bodies), fc.array(change, { maxLength: 5 }), fc.nat(), (body, changes, cut) => {
        const bytes = Buffer.from(body.subarray(0, body.length - (cut % 3 === 0 ? cut % body.length : 0)));
        for (const [at, value] of changes) if (bytes.length > 0) bytes[at % bytes.length] = value;
        refusal(bytes);
      }),
      { numRuns: 3000 },
    );
  });
});

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}
