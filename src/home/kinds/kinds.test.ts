import { describe, expect, test } from 'vitest';
import type { AnyObject } from '../../kube/objects/object.ts';
import { flatFields, isMessage, messageOf, messageOfKind } from '../messages/messages.ts';
import { kindSchemaOf, schemaOf } from '../messages/schemas.ts';
import { formatAge } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { compileSchema } from '../schema/compile.ts';
import { pruneUnknownFields } from '../schema/prune.ts';
import { validateSchema } from '../schema/validate.ts';
import { createTestApi, TestTime } from '../testing/test-api.ts';
import { customResourceDefinitionKind } from './custom-resource-definition.ts';
import { builtinKinds } from './index.ts';

const kinds = builtinKinds({ serviceRanges: ['10.96.0.0/16'], random: new TestTime().world.random });
const kindOf = (name: string): Kind => kinds.find((kind) => kind.kind === name)!;
const nowMs = Date.parse('2026-01-01T00:00:00Z');

describe('messages: the generated table', () => {
  test('every type a field names -> is in the table', () => {
    const seen = new Set<string>();
    const visit = (name: string) => {
      if (seen.has(name)) return;
      seen.add(name);
      for (const field of messageOf(name).fields) {
        if (!('message' in field.type)) continue;
        expect(isMessage(field.type.message), `${name}.${field.name}`).toBe(true);
        visit(field.type.message);
      }
    };
    for (const kind of kinds) visit(messageOfKind(kind.group === '' ? 'v1' : `${kind.group}/v1`, kind.kind)!);
    expect(seen.size).toBeGreaterThan(150);
  });

  test('Service: facts as the generated.proto has them', () => {
    const ports = messageOf('core.v1.ServiceSpec').byNumber.get(1);
    expect(ports).toMatchObject({
      name: 'ports',
      shape: 'list',
      listMapKeys: ['port', 'protocol'],
      patchMergeKey: 'port',
    });
    expect(messageOf('core.v1.ServicePort').byNumber.get(3)).toMatchObject({
      name: 'port',
      isRequired: true,
      type: { scalar: 'int32' },
    });
  });

  test('an inlined message -> its fields stand in the parent', () => {
    const names = flatFields('core.v1.Volume').map((field) => field.name);
    expect(names).toContain('name');
    expect(names).toContain('emptyDir');
    expect(names).not.toContain('volumeSource');
  });

  test.each([
    ['v1', 'Pod', 'core.v1.Pod'],
    ['rbac.authorization.k8s.io/v1', 'Role', 'rbac.v1.Role'],
    ['rbac.example.org/v1', 'Role', undefined],
    ['v1', 'toString', undefined],
  ])('%s %s -> %s', (apiVersion, kind, message) => {
    expect(messageOfKind(apiVersion, kind)).toBe(message);
  });
});

describe('schemas: of the built-in kinds', () => {
  const problems = (name: string, object: object) =>
    validateSchema(compileSchema(kindSchemaOf(name)), object as AnyObject).map(
      ({ field, message }) => `${field}: ${message}`,
    );

  test('a whole Service -> nothing wrong', () => {
    const spec = {
      ports: [
        { port: 80, targetPort: 'http' },
        { port: 81, targetPort: 8081 },
      ],
      selector: { a: 'b' },
    };
    expect(problems('core.v1.Service', { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec })).toEqual(
      [],
    );
  });

  test.each([
    ['core.v1.Service', { spec: { ports: [{ name: 'a' }] } }, 'spec.ports[0].port: Required value'],
    ['core.v1.Service', { spec: { ports: [{ port: '80' }] } }, 'spec.ports[0].port: Invalid value: "string"'],
    ['core.v1.Service', { spec: { ports: {} } }, 'spec.ports: Invalid value: "object"'],
    ['core.v1.Service', { spec: { selector: { a: 1 } } }, 'spec.selector.a: Invalid value: "integer"'],
    ['core.v1.Service', { spec: { ports: [{ port: 1 }, { port: 1 }] } }, 'spec.ports[1]: Duplicate value'],
    [
      'core.v1.Pod',
      { spec: { containers: [{ name: 'a', resources: { limits: { cpu: 'lots' } } }] } },
      'spec.containers[0].resources.limits.cpu: Invalid value: "lots"',
    ],
    ['core.v1.Secret', { data: { a: '!' } }, 'data.a: Invalid value: "!"'],
    ['coordination.v1.Lease', { spec: { renewTime: 'now' } }, 'spec.renewTime: Invalid value: "now"'],
    ['apps.v1.Deployment', { spec: { template: {} } }, 'spec.selector: Required value'],
  ])('%s %j -> %s', (name, object, text) => {
    expect(problems(name, object).join('; ')).toContain(text);
  });

  test('a status with less than it should have, or twice the same -> taken, as Kubernetes takes it', () => {
    expect(problems('core.v1.Pod', { status: { containerStatuses: [{ name: 'a' }] } })).toEqual([]);
    const addresses = [
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'InternalIP', address: 'fd00::1' },
    ];
    expect(problems('core.v1.Node', { status: { addresses } })).toEqual([]);
  });

  test('unknown fields -> named, wherever they are', () => {
    const object = { spec: { ports: [{ port: 80, porrt: 1 }], more: 1 }, x: 1, metadata: { nam: 'a' } };
    expect(pruneUnknownFields(schemaOf('core.v1.Service'), object as unknown as AnyObject).sort()).toEqual([
      'metadata.nam',
      'spec.more',
      'spec.ports[0].porrt',
      'x',
    ]);
  });

  test('every kind -> a schema, and the message by which its protobuf is known', () => {
    for (const kind of kinds) {
      expect(kind.versions[0]?.schema.properties, kind.kind).toHaveProperty('metadata');
      expect(kind.versions[0]?.protobufMessage).toMatch(new RegExp(`^k8s\\.io\\.api\\..*\\.${kind.kind}$`));
    }
  });
});

describe('kinds: what Go programs write', () => {
  test('null -> absent; a quantity as a number -> as text', async () => {
    const api = await createTestApi();
    const pod = {
      metadata: { name: 'a', creationTimestamp: null },
      spec: {
        nodeSelector: null,
        containers: [{ name: 'a', image: 'x', resources: { limits: { cpu: 0.5, memory: null } }, env: null }],
      },
      status: {},
    };
    const { spec } = await api.ok('POST /api/v1/namespaces/default/pods?fieldValidation=Strict', pod);
    expect(spec).not.toHaveProperty('nodeSelector');
    expect(spec.containers[0].resources.limits).toEqual({ cpu: '0.5' });
  });

  test('an EndpointSlice whose endpoints are null -> an empty one', async () => {
    const api = await createTestApi();
    const slice = { metadata: { name: 'a' }, addressType: 'IPv4', endpoints: null, ports: null };
    const path = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
    expect(await api.ok(`POST ${path}`, slice)).toMatchObject({ endpoints: [] });
  });

  test('wrong types all over -> every field is named, and nothing falls over', async () => {
    const api = await createTestApi();
    for (const kind of kinds) {
      const root = kind.group === '' ? '/api/v1' : `/apis/${kind.group}/v1`;
      const place = kind.isNamespaced ? `${root}/namespaces/default/${kind.plural}` : `${root}/${kind.plural}`;
      const body = {
        metadata: { name: 'a' },
        spec: 'x',
        data: 1,
        endpoints: {},
        addressType: [],
        involvedObject: 'x',
        regarding: 1,
      };
      const reply = await api.send(`POST ${place}`, body);
      expect([400, 422], `${kind.kind}: ${JSON.stringify(reply.body)}`).toContain(reply.status);
    }
  });
});

describe('kinds: namespace', () => {
  test('created -> its label, its finalizer, Active', async () => {
    const api = await createTestApi();
    expect(await api.ok('POST /api/v1/namespaces', { metadata: { name: 'shop' } })).toMatchObject({
      metadata: { labels: { 'kubernetes.io/metadata.name': 'shop' } },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    });
  });

  test('replaced without spec and with another label -> the finalizer and the label stay', async () => {
    const api = await createTestApi();
    await api.ok('POST /api/v1/namespaces', { metadata: { name: 'shop' } });
    const metadata = { name: 'shop', labels: { 'kubernetes.io/metadata.name': 'x', a: 'b' } };
    expect(await api.ok('PUT /api/v1/namespaces/shop', { metadata })).toMatchObject({
      metadata: { labels: { 'kubernetes.io/metadata.name': 'shop', a: 'b' } },
      spec: { finalizers: ['kubernetes'] },
    });
  });

  test.each(['default', 'kube-system'])('%s deleted -> refused', async (name) => {
    const api = await createTestApi();
    const reply = await api.send(`DELETE /api/v1/namespaces/${name}`);
    expect(reply).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining('this namespace may not be deleted') },
    });
  });

  test('a name with a dot -> refused', async () => {
    const api = await createTestApi();
    expect((await api.send('POST /api/v1/namespaces', { metadata: { name: 'a.b' } })).status).toBe(422);
  });
});

describe('kinds: names people type', () => {
  test.each([
    ['Service', 'svc', 'all'],
    ['Pod', 'po', 'all'],
    ['Node', 'no', ''],
    ['Namespace', 'ns', ''],
    ['ConfigMap', 'cm', ''],
    ['Event', 'ev', ''],
    ['Deployment', 'deploy', 'all'],
    ['StatefulSet', 'sts', 'all'],
  ])('%s is %s, in category "%s"', (name, shortName, category) => {
    expect(kindOf(name).shortNames).toContain(shortName);
    expect(kindOf(name).categories.join()).toBe(category);
  });
});

function row(name: string, fields: object): string {
  const kind = kindOf(name);
  const object = {
    metadata: { name: 'a', creationTimestamp: '2025-12-31T23:00:00Z' },
    ...fields,
  } as unknown as AnyObject;
  kind.behaviour.applyDefaults?.(object);
  const { columns } = kind.versions[0]!;
  return columns
    .map((column) => `${column.name}${column.priority > 0 ? '*' : ''}=${column.value(object, nowMs)}`)
    .join(' | ');
}

describe('kinds: columns as kubectl users know them (* with -o wide)', () => {
  const container = { name: 'c', image: 'x:1' };
  test.each([
    [
      'Service',
      {
        spec: {
          ports: [{ port: 80 }, { port: 443, nodePort: 30_443 }],
          clusterIP: '10.0.0.1',
          selector: { b: '2', a: '1' },
        },
      },
      'Name=a | Type=ClusterIP | Cluster-IP=10.0.0.1 | External-IP=<none> | Port(s)=80/TCP,443:30443/TCP | Age=60m | Selector*=a=1,b=2',
    ],
    [
      'Service',
      { spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } },
      'Name=a | Type=LoadBalancer | Cluster-IP=<none> | External-IP=<pending> | Port(s)=80/TCP | Age=60m | Selector*=<none>',
    ],
    [
      'Service',
      { spec: { type: 'ExternalName', externalName: 'x.example' } },
      'Name=a | Type=ExternalName | Cluster-IP=<none> | External-IP=x.example | Port(s)=<none> | Age=60m | Selector*=<none>',
    ],
    ['Namespace', {}, 'Name=a | Status=Active | Age=60m'],
    [
      'EndpointSlice',
      {
        addressType: 'IPv4',
        endpoints: [{ addresses: ['10.0.0.1', '10.0.0.2'] }, { addresses: ['10.0.0.3'] }, { addresses: ['10.0.0.4'] }],
        ports: [{ port: 80 }],
      },
      'Name=a | AddressType=IPv4 | Ports=80 | Endpoints=10.0.0.1,10.0.0.2,10.0.0.3 + 1 more... | Age=60m',
    ],
    [
      'EndpointSlice',
      { addressType: 'IPv4' },
      'Name=a | AddressType=IPv4 | Ports=<unset> | Endpoints=<unset> | Age=60m',
    ],
    ['Lease', { spec: { holderIdentity: 'me' } }, 'Name=a | Holder=me | Age=60m'],
    ['Secret', { stringData: { x: 'y' } }, 'Name=a | Type=Opaque | Data=1 | Age=60m'],
    ['ConfigMap', { data: { x: 'y' }, binaryData: { z: '' } }, 'Name=a | Data=2 | Age=60m'],
    [
      'Deployment',
      {
        spec: { replicas: 3, selector: { matchLabels: { a: 'b' } }, template: { spec: { containers: [container] } } },
        status: { readyReplicas: 2, updatedReplicas: 3, availableReplicas: 1 },
      },
      'Name=a | Ready=2/3 | Up-to-date=3 | Available=1 | Age=60m | Containers*=c | Images*=x:1 | Selector*=a=b',
    ],
    [
      'StatefulSet',
      { spec: { template: { spec: { containers: [container] } } } },
      'Name=a | Ready=0/1 | Age=60m | Containers*=c | Images*=x:1',
    ],
    [
      'Node',
      {
        metadata: {
          name: 'a',
          labels: { 'node-role.kubernetes.io/worker': '' },
          creationTimestamp: '2025-12-31T23:00:00Z',
        },
        spec: { unschedulable: true },
        status: {
          conditions: [{ type: 'Ready', status: 'True' }],
          addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
          nodeInfo: { kubeletVersion: 'v1' },
        },
      },
      'Name=a | Status=Ready,SchedulingDisabled | Roles=worker | Age=60m | Version=v1 | Internal-IP*=10.0.0.1 | External-IP*=<none> | OS-Image*=<unknown> | Kernel-Version*=<unknown> | Container-Runtime*=<unknown>',
    ],
    [
      'Event',
      {
        type: 'Warning',
        reason: 'Failed',
        message: ' it broke ',
        involvedObject: { kind: 'Pod', name: 'p' },
        source: { component: 'me' },
        lastTimestamp: '2025-12-31T23:59:00Z',
        firstTimestamp: '2025-12-31T23:58:00Z',
        count: 2,
      },
      'Last Seen=60s | Type=Warning | Reason=Failed | Object=pod/p | Message=it broke | Subobject*= | Source*=me | First Seen*=2m | Count*=2 | Name*=a',
    ],
  ])('%s', (name, fields, expected) => {
    expect(row(name, fields)).toBe(expected);
  });

  const status = (fields: object, metadata: object = {}) =>
    row('Pod', { metadata: { name: 'a', ...metadata }, spec: { containers: [container] }, status: fields })
      .split(' | ')
      .slice(1, 4)
      .join(' ');
  const containerStatus = (state: object, more: object = {}) => ({
    containerStatuses: [{ name: 'c', state, ...more }],
  });

  test.each([
    [{}, {}, 'Ready=0/1 Status=Pending Restarts=0'],
    [
      { phase: 'Running', ...containerStatus({ running: {} }, { ready: true }) },
      {},
      'Ready=1/1 Status=Running Restarts=0',
    ],
    [
      {
        phase: 'Running',
        ...containerStatus(
          { waiting: { reason: 'CrashLoopBackOff' } },
          { restartCount: 4, lastState: { terminated: { finishedAt: '2025-12-31T23:59:30Z' } } },
        ),
      },
      {},
      'Ready=0/1 Status=CrashLoopBackOff Restarts=4 (30s ago)',
    ],
    [
      { phase: 'Failed', ...containerStatus({ terminated: { exitCode: 3 } }) },
      {},
      'Ready=0/1 Status=ExitCode:3 Restarts=0',
    ],
    [
      { phase: 'Succeeded', ...containerStatus({ terminated: { reason: 'Completed', exitCode: 0 } }) },
      {},
      'Ready=0/1 Status=Completed Restarts=0',
    ],
    [
      { phase: 'Pending', initContainerStatuses: [{ name: 'i', state: { terminated: { exitCode: 1 } } }] },
      {},
      'Ready=0/1 Status=Init:ExitCode:1 Restarts=0',
    ],
    [{ phase: 'Running' }, { deletionTimestamp: '2025-12-31T23:59:59Z' }, 'Ready=0/1 Status=Terminating Restarts=0'],
  ])('Pod %# -> %s %s', (fields, metadata, expected) => {
    expect(status(fields, metadata)).toBe(expected);
  });

  test.each([
    [0, '0s'],
    [119_000, '119s'],
    [200_000, '3m20s'],
    [600_000, '10m'],
    [3 * 3_600_000, '3h'],
    [5 * 3_600_000 + 720_000, '5h12m'],
    [50 * 3_600_000, '2d2h'],
    [40 * 86_400_000, '40d'],
    [800 * 86_400_000, '2y70d'],
    [-10_000, '<invalid>'],
  ])('age of %d ms -> %s', (ageMs, text) => {
    expect(formatAge(new Date(nowMs - ageMs).toISOString(), nowMs)).toBe(text);
  });

  test('no creation time -> <unknown>', () => {
    expect(formatAge(undefined, nowMs)).toBe('<unknown>');
  });
});

describe('kinds: fields to select by', () => {
  test.each([
    [
      'Pod',
      { spec: { nodeName: 'n' }, status: { phase: 'Running', podIP: '10.0.0.1' } },
      { 'spec.nodeName': 'n', 'status.phase': 'Running', 'status.podIP': '10.0.0.1' },
    ],
    ['Secret', { type: 'Opaque' }, { type: 'Opaque' }],
    ['Namespace', { status: { phase: 'Terminating' } }, { 'status.phase': 'Terminating' }],
    ['Node', {}, { 'spec.unschedulable': 'false' }],
    [
      'Service',
      { spec: { type: 'ClusterIP', clusterIP: '10.0.0.1' } },
      { 'spec.type': 'ClusterIP', 'spec.clusterIP': '10.0.0.1' },
    ],
    [
      'Event',
      { reason: 'R', type: 'Normal', involvedObject: { kind: 'Pod', name: 'p', namespace: 'n', uid: 'u' } },
      {
        reason: 'R',
        type: 'Normal',
        'involvedObject.kind': 'Pod',
        'involvedObject.name': 'p',
        'involvedObject.namespace': 'n',
        'involvedObject.uid': 'u',
      },
    ],
  ])('%s %j -> %j', (name, fields, expected) => {
    const object = { metadata: { name: 'a' }, ...fields } as unknown as AnyObject;
    const { selectableFields = {} } = kindOf(name).behaviour;
    for (const [field, value] of Object.entries(expected)) expect(selectableFields[field]?.(object), field).toBe(value);
  });

  test('a Pod by its node -> found over the API', async () => {
    const api = await createTestApi();
    for (const [name, nodeName] of [
      ['a', 'n1'],
      ['b', 'n2'],
    ]) {
      await api.ok('POST /api/v1/namespaces/default/pods', {
        metadata: { name },
        spec: { nodeName, containers: [{ name: 'c', image: 'x' }] },
      });
    }
    const { items } = await api.ok('GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn2');
    expect(items.map((item: AnyObject) => item.metadata.name)).toEqual(['b']);
  });
});

test('kinds: metadata.generation -> counted for the kinds of which Kubernetes counts it, and for no other', () => {
  const counted = kinds.filter((kind) => kind.behaviour.hasGeneration).map((kind) => kind.kind);
  expect(counted.sort()).toEqual([
    ...['DaemonSet', 'Deployment', 'EndpointSlice', 'Ingress', 'IngressClass', 'NetworkPolicy', 'Pod'],
    ...['PodDisruptionBudget', 'ReplicaSet', 'ReplicationController', 'StatefulSet'],
  ]);
  expect(customResourceDefinitionKind.behaviour.hasGeneration).toBe(true);
});
