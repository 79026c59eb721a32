// The rules of the kinds that are stored and read, but not acted on: one table per kind.

import { describe, expect, test } from 'vitest';
import { type ConfigMap, validateConfigMap } from '../../../kube/objects/config-map.ts';
import type { EndpointSlice } from '../../../kube/objects/endpoint-slice.ts';
import type { KubernetesEvent } from '../../../kube/objects/event.ts';
import type { FieldError } from '../../../kube/objects/field-error.ts';
import { checkLabelSelector, selectsLabels } from '../../../kube/objects/label-selector.ts';
import type { Lease } from '../../../kube/objects/lease.ts';
import { type Node, validateNode } from '../../../kube/objects/node.ts';
import type { Pod } from '../../../kube/objects/pod.ts';
import { applySecretDefaults, type Secret, validateSecret } from '../../../kube/objects/secret.ts';
import { applyEndpointSliceDefaults, validateEndpointSlice } from '../endpoint-slice.ts';
import { type NewEvent, validateEvent, validateNewEvent } from '../event.ts';
import { validateLease } from '../lease.ts';
import {
  applyDeploymentDefaults,
  applyStatefulSetDefaults,
  type Deployment,
  type StatefulSet,
  validateDeployment,
  validateStatefulSet,
} from '../workload.ts';
import { applyPodDefaults, validatePod } from './pod-rules.ts';

function made<T>(fields: object): T {
  return { apiVersion: '', kind: '', metadata: { name: 'a', namespace: 'shop' }, ...structuredClone(fields) } as T;
}

function texts(errors: readonly FieldError[]): string[] {
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

describe('endpoint slice', () => {
  const errorsOf = (fields: object, before?: object) =>
    texts(validateEndpointSlice(made<EndpointSlice>(fields), before && made<EndpointSlice>(before)));
  const endpoints = [{ addresses: ['10.1.2.3'] }];

  test('defaults: a port without name and protocol -> an empty name, TCP; no endpoints -> an empty list', () => {
    const slice = made<EndpointSlice>({ addressType: 'IPv4', ports: [{ port: 80 }] });
    applyEndpointSliceDefaults(slice);
    expect(slice).toMatchObject({ endpoints: [], ports: [{ port: 80, name: '', protocol: 'TCP' }] });
  });

  test.each([
    [{ addressType: 'IPv4', endpoints }],
    [{ addressType: 'IPv4', endpoints: [{ addresses: ['127.0.0.1'], hostname: 'a', nodeName: 'n.example' }] }],
    [{ addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'] }], ports: [{ name: 'a' }, { name: 'b', port: 1 }] }],
    [{ addressType: 'FQDN', endpoints: [{ addresses: ['db.example.com'] }] }],
    [{ addressType: 'IPv4', endpoints: Array(1000).fill(endpoints[0]) }],
  ])('%# -> nothing wrong', (fields) => {
    expect(errorsOf(fields)).toEqual([]);
  });

  test.each([
    [
      { addressType: 'IPX', endpoints: [] },
      'addressType: Unsupported value: "IPX": supported values: "FQDN", "IPv4", "IPv6"',
    ],
    [
      { addressType: 'IPv4', endpoints: [{ addresses: [] }] },
      'endpoints[0].addresses: Required value: must contain at least 1 address',
    ],
    [
      { addressType: 'IPv4', endpoints: [{ addresses: ['fd00::1'] }] },
      'endpoints[0].addresses[0]: Invalid value: "fd00::1": must be a valid IPv4 address',
    ],
    [
      { addressType: 'IPv6', endpoints },
      'endpoints[0].addresses[0]: Invalid value: "10.1.2.3": must be a valid IPv6 address',
    ],
    [
      { addressType: 'FQDN', endpoints: [{ addresses: ['Db'] }] },
      'endpoints[0].addresses[0]: Invalid value: "Db": must be lower case',
    ],
    [{ addressType: 'IPv4', endpoints: [{ addresses: ['0.0.0.0'] }] }, 'may not be unspecified (0.0.0.0)'],
    [{ addressType: 'IPv4', endpoints: [{ addresses: ['169.254.1.1'] }] }, 'may not be in the link-local range'],
    [{ addressType: 'IPv6', endpoints: [{ addresses: ['ff02::1'] }] }, 'may not be in the multicast range'],
    [
      { addressType: 'IPv4', endpoints: Array(1001).fill(endpoints[0]) },
      'endpoints: Too many: 1001: must have at most 1000 items',
    ],
    [
      { addressType: 'IPv4', endpoints: [{ addresses: Array(101).fill('10.1.2.3') }] },
      'endpoints[0].addresses: Too many: 101: must have at most 100 items',
    ],
    [
      { addressType: 'IPv4', endpoints: [], ports: Array(20_001).fill({}) },
      'ports: Too many: 20001: must have at most 20000 items',
    ],
    [
      { addressType: 'IPv4', endpoints: [], ports: [{ name: 'a' }, { name: 'a' }] },
      'ports[1].name: Duplicate value: "a"',
    ],
    [
      { addressType: 'IPv4', endpoints: [], ports: [{ name: 'A' }] },
      'ports[0].name: Invalid value: "A": must be lower case',
    ],
    [
      { addressType: 'IPv4', endpoints: [], ports: [{ port: 0 }] },
      'ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
    ],
    [
      { addressType: 'IPv4', endpoints: [{ ...endpoints[0], hostname: 'a.b' }] },
      'endpoints[0].hostname: Invalid value: "a.b": must be lower case',
    ],
    [
      { addressType: 'IPv4', endpoints: [{ ...endpoints[0], hints: { forZones: [{ name: 'z' }, { name: 'z' }] } }] },
      'endpoints[0].hints.forZones[1].name: Duplicate value: "z"',
    ],
  ])('%# -> %s', (fields, text) => {
    expect(errorsOf(fields)).toEqual([expect.stringContaining(text)]);
  });

  test('another addressType on update -> refused', () => {
    const errors = errorsOf({ addressType: 'IPv6', endpoints: [] }, { addressType: 'IPv4', endpoints: [] });
    expect(errors).toEqual(['addressType: Invalid value: "IPv6": field is immutable']);
  });
});

describe('secret', () => {
  const errorsOf = (fields: object, before?: object) =>
    texts(
      validateSecret(
        made<Secret>({ type: 'Opaque', ...fields }),
        before && made<Secret>({ type: 'Opaque', ...before }),
      ),
    );

  test('stringData -> goes into data, over what is there, and is not kept', () => {
    const secret = made<Secret>({ data: { a: 'YQ==', b: 'Yg==' }, stringData: { b: 'new' } });
    applySecretDefaults(secret);
    expect(secret).toMatchObject({ type: 'Opaque', data: { a: 'YQ==', b: 'bmV3' } });
    expect(secret).not.toHaveProperty('stringData');
  });

  test.each([
    [{ data: { 'a/b': '' } }, undefined, ['data[a/b]: Invalid value: "a/b": must be letters, digits']],
    [{ data: { a: 'A'.repeat(1_400_000) } }, undefined, ['data: Too long: may not be more than 1048576 bytes']],
    [
      { type: 'kubernetes.io/tls', data: {} },
      undefined,
      ['data[tls.crt]: Required value', 'data[tls.key]: Required value'],
    ],
    [
      { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': 'YQ==' } },
      undefined,
      ['data[.dockerconfigjson]: Invalid value: "<secret contents redacted>"'],
    ],
    [
      { type: 'kubernetes.io/basic-auth' },
      undefined,
      ['data[username]: Required value', 'data[password]: Required value'],
    ],
    [
      { type: 'kubernetes.io/service-account-token' },
      undefined,
      ['metadata.annotations[kubernetes.io/service-account.name]: Required value'],
    ],
    [{ type: 'b' }, { type: 'a' }, ['type: Invalid value: "b": field is immutable']],
    [
      { immutable: true, data: { a: 'Yg==' } },
      { immutable: true, data: { a: 'YQ==' } },
      ['data: Forbidden: field is immutable when `immutable` is set'],
    ],
    [{ data: {} }, { immutable: true }, ['immutable: Forbidden: field is immutable when `immutable` is set']],
    [{ immutable: true, data: { b: '', a: '' } }, { immutable: true, data: { a: '', b: '' } }, []],
  ])('%# -> %j', (fields, before, expected) => {
    expect(errorsOf(fields, before)).toEqual(expected.map((text) => expect.stringContaining(text)));
  });
});

describe('config map', () => {
  const errorsOf = (fields: object, before?: object) =>
    texts(validateConfigMap(made<ConfigMap>(fields), before && made<ConfigMap>(before)));

  test.each([
    [{ data: { a: '1' }, binaryData: { b: 'YQ==' } }, undefined, []],
    [
      { data: { a: '1' }, binaryData: { a: 'YQ==' } },
      undefined,
      ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
    ],
    [{ data: { '..': '' } }, undefined, ['data[..]: Invalid value: "..": must not be \'..\'']],
    [{ data: { a: 'é'.repeat(600_000) } }, undefined, [': Too long: may not be more than 1048576 bytes']],
    [
      { immutable: true, data: { a: '2' } },
      { immutable: true, data: { a: '1' } },
      ['data: Forbidden: field is immutable when `immutable` is set'],
    ],
  ])('%# -> %j', (fields, before, expected) => {
    expect(errorsOf(fields, before)).toEqual(expected);
  });
});

describe('lease', () => {
  test.each([
    [{ spec: { leaseDurationSeconds: 15, leaseTransitions: 0, holderIdentity: 'a' } }, []],
    [{}, []],
    [{ spec: { leaseDurationSeconds: 0 } }, ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0']],
    [
      { spec: { leaseTransitions: -1 } },
      ['spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0'],
    ],
  ])('%j -> %j', (fields, expected) => {
    expect(texts(validateLease(made<Lease>(fields)))).toEqual(expected);
  });
});

describe('event', () => {
  test('about something in another namespace -> refused; about something without one -> fine', () => {
    const about = (namespace?: string) =>
      made<KubernetesEvent>({ involvedObject: { kind: 'Pod', name: 'p', namespace } });
    expect(texts(validateEvent(about('other')))).toEqual([
      'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
    ]);
    expect(validateEvent(about('shop'))).toEqual([]);
    expect(validateEvent(about())).toEqual([]);
  });

  test('in the words of events.k8s.io with nothing said -> everything that is missing', () => {
    expect(texts(validateNewEvent(made<NewEvent>({})))).toEqual([
      'eventTime: Required value',
      'reportingController: Required value',
      'reportingInstance: Required value',
      'action: Required value',
      'reason: Required value',
      'type: Unsupported value: "": supported values: "Normal", "Warning"',
    ]);
  });
});

describe('node', () => {
  test.each([
    [{ spec: { podCIDRs: ['10.1.0.0/24'], taints: [{ key: 'a', effect: 'NoSchedule' }] } }, []],
    [{ spec: { podCIDRs: ['10.1.0.0'] } }, ['spec.podCIDRs[0]: Invalid value: "10.1.0.0": must be a CIDR']],
    [{ spec: { taints: [{ key: 'a', effect: 'Maybe' }] } }, ['spec.taints[0].effect: Unsupported value: "Maybe"']],
  ])('%j -> %j', (fields, expected) => {
    expect(texts(validateNode(made<Node>(fields)))).toEqual(expected.map((text) => expect.stringContaining(text)));
  });
});

describe('pod', () => {
  const pod = (spec: object, status?: object) => {
    const one = made<Pod>({ spec: { containers: [{ name: 'a', image: 'x:1' }], ...spec }, ...(status && { status }) });
    applyPodDefaults(one);
    return one;
  };

  test('defaults: one container -> what Kubernetes would fill in', () => {
    expect(pod({})).toMatchObject({
      spec: {
        restartPolicy: 'Always',
        dnsPolicy: 'ClusterFirst',
        terminationGracePeriodSeconds: 30,
        containers: [{ imagePullPolicy: 'IfNotPresent', terminationMessagePolicy: 'File', resources: {} }],
      },
      status: { phase: 'Pending', qosClass: 'BestEffort' },
    });
  });

  test.each([
    ['nginx', 'Always'],
    ['reg:5000/nginx', 'Always'],
    ['nginx:latest', 'Always'],
    ['nginx:1', 'IfNotPresent'],
    ['nginx@sha256:0', 'IfNotPresent'],
  ])('defaults: image %s -> pulled %s', (image, policy) => {
    expect(pod({ containers: [{ name: 'a', image }] }).spec?.containers?.[0]?.imagePullPolicy).toBe(policy);
  });

  test('defaults: one of podIP and podIPs -> both', () => {
    expect(pod({}, { podIP: '10.0.0.1' }).status?.podIPs).toEqual([{ ip: '10.0.0.1' }]);
    expect(pod({}, { podIPs: [{ ip: 'fd00::1' }, { ip: '10.0.0.1' }] }).status?.podIP).toBe('fd00::1');
  });

  test('defaults: limits -> requests, and the class that follows from them', () => {
    const limits = { cpu: '1', memory: '1Gi' };
    const one = pod({ containers: [{ name: 'a', image: 'x', resources: { limits } }] });
    expect(one.spec?.containers?.[0]?.resources?.requests).toEqual(limits);
    expect(one.status?.qosClass).toBe('Guaranteed');
  });

  test.each([
    [{ containers: [] }, ['spec.containers: Required value']],
    [{ containers: [{ name: 'a' }] }, ['spec.containers[0].image: Required value']],
    [{ containers: [{ image: 'x' }] }, ['spec.containers[0].name: Required value']],
    [{ initContainers: [{ name: 'a', image: 'x' }] }, ['spec.containers[0].name: Duplicate value: "a"']],
    [
      { containers: [{ name: 'a', image: 'x', ports: [{ containerPort: 0 }] }] },
      ['spec.containers[0].ports[0].containerPort: Invalid value: 0'],
    ],
    [
      { containers: [{ name: 'a', image: 'x', volumeMounts: [{ name: 'v', mountPath: '/v' }] }] },
      ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ],
    [
      { containers: [{ name: 'a', image: 'x', env: [{ name: 'A=B' }] }] },
      ['spec.containers[0].env[0].name: Invalid value: "A=B"'],
    ],
    [{ restartPolicy: 'Sometimes' }, ['spec.restartPolicy: Unsupported value: "Sometimes"']],
    [{ hostname: 'a.b' }, ['spec.hostname: Invalid value: "a.b"']],
    [{ volumes: [{ name: 'V' }] }, ['spec.volumes[0].name: Invalid value: "V"']],
  ])('%j -> %j', (spec, expected) => {
    expect(texts(validatePod(pod(spec), undefined))).toEqual(expected.map((text) => expect.stringContaining(text)));
  });

  test('update: the image, or a node where there was none -> fine; anything else -> refused', () => {
    const before = pod({});
    expect(validatePod(pod({ containers: [{ name: 'a', image: 'y:1' }], nodeName: 'n' }), before)).toEqual([]);
    expect(texts(validatePod(pod({ hostname: 'h' }), before))).toEqual([
      expect.stringContaining('spec: Forbidden: of a Pod only images'),
    ]);
    expect(validatePod(pod({ nodeName: 'm' }), pod({ nodeName: 'n' }))).toHaveLength(1);
  });
});

describe('deployment and stateful set', () => {
  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'a', image: 'x' }] } };
  const selector = { matchLabels: { app: 'a' } };
  const deployment = (spec: object) => {
    const one = made<Deployment>({ spec: { selector, template, ...spec } });
    applyDeploymentDefaults(one);
    return one;
  };
  const statefulSet = (spec: object) => {
    const one = made<StatefulSet>({ spec: { selector, template, ...spec } });
    applyStatefulSetDefaults(one);
    return one;
  };

  test('defaults -> one replica, rolling updates, the defaults of its Pods', () => {
    expect(deployment({}).spec).toMatchObject({
      replicas: 1,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      template: { spec: { restartPolicy: 'Always' } },
    });
    expect(statefulSet({}).spec).toMatchObject({
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate' },
    });
  });

  test.each([
    [{}, []],
    [{ selector: {} }, ['spec.selector: Invalid value: {}: empty selector is invalid for deployment']],
    [
      { selector: { matchLabels: { app: 'b' } } },
      ['spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'],
    ],
    [{ replicas: -1 }, ['spec.replicas: Invalid value: -1: must be greater than or equal to 0']],
    [
      { template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } },
      ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ],
    [{ template: { ...template, spec: { containers: [] } } }, ['spec.template.spec.containers: Required value']],
    [
      { strategy: { type: 'Recreate', rollingUpdate: {} } },
      ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    ],
  ])('deployment %j -> %j', (spec, expected) => {
    expect(texts(validateDeployment(deployment(spec), undefined))).toEqual(expected);
  });

  test('another selector on update -> refused, in another order it is the same one', () => {
    const two = { matchLabels: { app: 'a', tier: 'b' } };
    const labelled = { ...template, metadata: { labels: { app: 'a', tier: 'b' } } };
    const before = deployment({ selector: two, template: labelled });
    expect(texts(validateDeployment(deployment({ template: labelled }), before))).toEqual([
      expect.stringContaining('spec.selector: Invalid value'),
    ]);
    const turned = deployment({ selector: { matchLabels: { tier: 'b', app: 'a' } }, template: labelled });
    expect(validateDeployment(turned, before)).toEqual([]);
  });

  test('stateful set: another service on update -> refused', () => {
    const errors = texts(validateStatefulSet(statefulSet({ serviceName: 'b' }), statefulSet({ serviceName: 'a' })));
    expect(errors).toEqual([expect.stringContaining('spec: Forbidden: selector, serviceName')]);
  });
});

describe('label selector', () => {
  const expression = (operator: string, values?: string[]) => ({
    matchExpressions: [{ key: 'a', operator, ...(values && { values }) }],
  });

  test.each([
    [{}, {}, true],
    [{ matchLabels: { a: '1' } }, { a: '1', b: '2' }, true],
    [{ matchLabels: { a: '1' } }, { a: '2' }, false],
    [expression('In', ['1', '2']), { a: '2' }, true],
    [expression('In', ['1']), {}, false],
    [expression('NotIn', ['1']), {}, true],
    [expression('NotIn', ['1']), { a: '1' }, false],
    [expression('Exists'), { a: '' }, true],
    [expression('DoesNotExist'), { a: '' }, false],
  ])('%j on %j -> %s', (selector, labels, expected) => {
    expect(selectsLabels(selector, labels as Record<string, string>)).toBe(expected);
  });

  test.each([
    [
      expression('In'),
      "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ],
    [
      expression('Exists', ['1']),
      "s.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ],
    [expression('Like', ['1']), 's.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator'],
  ])('%j -> %s', (selector, text) => {
    const errors: FieldError[] = [];
    checkLabelSelector(errors, 's', selector);
    expect(texts(errors)).toEqual([text]);
  });
});
