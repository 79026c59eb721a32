import { describe, expect, test } from 'vitest';
import type { IpFamily } from '../../../base/net/ip.ts';
import type { Service, ServiceSpec } from '../../../kube/objects/service.ts';
import { applyServiceDefaults } from '../../../kube/objects/service-defaults.ts';
import {
  addressesWanted,
  clusterIpChangeErrors,
  settleServiceFamilies,
  settleServiceFields,
} from './service-families.ts';
import { validateService } from './service-validation.ts';

function service(spec: object): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'shop' }, spec: spec as ServiceSpec };
}

function defaulted(spec: object): Service {
  const made = service(structuredClone(spec));
  applyServiceDefaults(made);
  return made;
}

function errorsOf(spec: object, previous?: object): string[] {
  const errors = validateService(defaulted(spec), previous === undefined ? undefined : defaulted(previous));
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

const port = { ports: [{ port: 80 }] };

describe('service: defaults', () => {
  test('one port and nothing else -> everything Kubernetes would fill in', () => {
    expect(defaulted(port)).toMatchObject({
      spec: {
        type: 'ClusterIP',
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
        ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
      },
      status: { loadBalancer: {} },
    });
  });

  test('a targetPort of zero, as Go programs write none -> the port', () => {
    expect(defaulted({ ports: [{ port: 80, targetPort: 0, nodePort: 0 }] }).spec?.ports).toEqual([
      { port: 80, protocol: 'TCP', targetPort: 80 },
    ]);
  });

  test('affinity by client -> three hours; without affinity -> no settings of it', () => {
    const timeout = { clientIP: { timeoutSeconds: 10_800 } };
    expect(defaulted({ ...port, sessionAffinity: 'ClientIP' }).spec?.sessionAffinityConfig).toEqual(timeout);
    expect(defaulted({ ...port, sessionAffinityConfig: timeout }).spec?.sessionAffinityConfig).toBeUndefined();
  });

  test('LoadBalancer -> policies of one that is reached from outside', () => {
    expect(defaulted({ ...port, type: 'LoadBalancer' }).spec).toMatchObject({
      externalTrafficPolicy: 'Cluster',
      allocateLoadBalancerNodePorts: true,
    });
  });

  test('ExternalName -> no policy for traffic that never comes', () => {
    expect(defaulted({ type: 'ExternalName', externalName: 'x.example' }).spec).not.toHaveProperty(
      'internalTrafficPolicy',
    );
  });
});

describe('service: validation', () => {
  test.each([
    [port],
    [{ clusterIP: 'None' }],
    [{ type: 'ExternalName', externalName: 'x.example.' }],
    [
      {
        ports: [
          { port: 80, name: 'a', targetPort: 'http' },
          { port: 80, name: 'b', protocol: 'UDP' },
        ],
      },
    ],
    [{ ...port, clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00::1'], ipFamilyPolicy: 'RequireDualStack' }],
    [{ type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] }],
    [{ type: 'LoadBalancer', ...port, loadBalancerSourceRanges: ['10.0.0.0/8'], loadBalancerClass: 'example.com/a' }],
  ])('%j -> nothing wrong', (spec) => {
    expect(errorsOf(spec)).toEqual([]);
  });

  test.each([
    [{}, 'spec.ports: Required value'],
    [{ ports: [{ port: 0 }] }, 'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive'],
    [
      { ports: [{ port: 80, protocol: 'ICMP' }] },
      'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
    ],
    [
      { ports: [{ port: 80, targetPort: 70_000 }] },
      'spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive',
    ],
    [
      { ports: [{ port: 80, targetPort: '80' }] },
      'spec.ports[0].targetPort: Invalid value: "80": must contain a letter',
    ],
    [
      { ports: [{ port: 80, nodePort: 30_080 }] },
      "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
    ],
    [
      { ...port, type: 'Anycast' },
      'spec.type: Unsupported value: "Anycast": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
    ],
    [
      { ...port, sessionAffinity: 'Cookie' },
      'spec.sessionAffinity: Unsupported value: "Cookie": supported values: "ClientIP", "None"',
    ],
    [
      { ...port, sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400',
    ],
    [
      { ...port, clusterIP: 'ten' },
      'spec.clusterIPs[0]: Invalid value: "ten": must be empty, \'None\', or a valid IP address',
    ],
    [
      { ...port, clusterIPs: ['10.0.0.1'] },
      'spec.clusterIPs: Invalid value: ["10.0.0.1"]: must be empty when `clusterIP` is not specified',
    ],
    [
      { ...port, clusterIP: '10.0.0.2', clusterIPs: ['10.0.0.1'] },
      'spec.clusterIPs: Invalid value: ["10.0.0.1"]: first value must match `clusterIP`',
    ],
    [
      { ...port, clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', '10.0.0.2'] },
      'spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family',
    ],
    [
      { ...port, type: 'LoadBalancer', clusterIP: 'None' },
      'spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for LoadBalancer services',
    ],
    [
      { ...port, ipFamilies: ['IPv5'] },
      'spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"',
    ],
    [{ ...port, ipFamilies: ['IPv4', 'IPv4'] }, 'spec.ipFamilies[1]: Duplicate value: "IPv4"'],
    [{ ...port, selector: { 'a b': 'c' } }, 'spec.selector: Invalid value: "a b": name part must be letters'],
    [{ type: 'ExternalName' }, 'spec.externalName: Required value'],
    [
      { type: 'ExternalName', externalName: 'x.example', clusterIP: '10.0.0.1' },
      'spec.clusterIPs: Forbidden: may not be set for ExternalName services',
    ],
    [{ ...port, externalIPs: ['x'] }, 'spec.externalIPs[0]: Invalid value: "x": must be an IP address'],
    [
      { ...port, loadBalancerSourceRanges: ['10.0.0.0/8'] },
      "spec.loadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
    ],
    [
      { ...port, externalTrafficPolicy: 'Local' },
      'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
    ],
    [{ ...port, trafficDistribution: 'Far' }, 'spec.trafficDistribution: Unsupported value: "Far"'],
  ])('%j -> %s', (spec, text) => {
    expect(errorsOf(spec)).toEqual([expect.stringContaining(text)]);
  });

  test('two ports without names, one name twice -> every error at once', () => {
    expect(errorsOf({ ports: [{ port: 1 }, { port: 2 }] })).toEqual([
      'spec.ports[0].name: Required value',
      'spec.ports[1].name: Required value',
    ]);
    expect(
      errorsOf({
        ports: [
          { port: 1, name: 'a' },
          { port: 2, name: 'a' },
        ],
      }),
    ).toEqual(['spec.ports[1].name: Duplicate value: "a"']);
  });

  test('what another type left behind is not held against an update', () => {
    const before = {
      type: 'NodePort',
      clusterIP: '10.0.0.1',
      ipFamilies: ['IPv4'],
      ports: [{ port: 80, nodePort: 30_080 }],
    };
    expect(errorsOf({ ...before, type: 'ClusterIP' }, before)).toEqual([]);
    expect(errorsOf({ ...before, type: 'ExternalName', externalName: 'x.example', ports: [] }, before)).toEqual([]);
  });
});

describe('service: families', () => {
  const settle = (spec: object, configured: IpFamily[], previous?: object) => {
    const made = defaulted(spec);
    settleServiceFields(made, previous === undefined ? undefined : service(previous));
    const errors = settleServiceFamilies(made.spec!, configured);
    const { ipFamilies, ipFamilyPolicy } = made.spec!;
    return errors.length > 0
      ? errors.map(({ field, message }) => `${field}: ${message}`).join('; ')
      : `${ipFamilyPolicy} ${ipFamilies?.join(',')}`;
  };
  const both: IpFamily[] = ['IPv4', 'IPv6'];
  const headless = { ...port, clusterIP: 'None' };

  test.each<[object, IpFamily[], string]>([
    [port, ['IPv4'], 'SingleStack IPv4'],
    [port, ['IPv6', 'IPv4'], 'SingleStack IPv6'],
    [{ ...port, ipFamilies: ['IPv6'] }, both, 'SingleStack IPv6'],
    [{ ...port, clusterIP: 'fd00::1' }, both, 'SingleStack IPv6'],
    [{ ...port, ipFamilyPolicy: 'PreferDualStack' }, both, 'PreferDualStack IPv4,IPv6'],
    [{ ...port, ipFamilyPolicy: 'PreferDualStack' }, ['IPv4'], 'PreferDualStack IPv4'],
    [{ ...port, ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6'] }, both, 'RequireDualStack IPv6,IPv4'],
    [
      { ...port, ipFamilyPolicy: 'RequireDualStack' },
      ['IPv4'],
      'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
    ],
    [
      { ...port, ipFamilies: ['IPv6'] },
      ['IPv4'],
      'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
    ],
    [
      { ...port, ipFamilies: both },
      both,
      'spec.ipFamilyPolicy: Invalid value: "SingleStack": must be RequireDualStack or PreferDualStack when multiple ipFamilies are specified',
    ],
    [
      { ...port, clusterIP: 'fd00::1', ipFamilies: ['IPv4'] },
      both,
      'spec.clusterIPs[0]: Invalid value: "fd00::1": expected an IPv4 value as indicated by `ipFamilies[0]`',
    ],
    [{ ...headless, selector: { a: 'b' } }, ['IPv4'], 'SingleStack IPv4'],
    [headless, ['IPv4'], 'RequireDualStack IPv4,IPv6'],
    [{ ...headless, ipFamilyPolicy: 'SingleStack' }, both, 'SingleStack IPv4'],
    [{ ...headless, ipFamilyPolicy: 'PreferDualStack' }, ['IPv6'], 'PreferDualStack IPv6'],
    [{ type: 'ExternalName', externalName: 'x.example' }, both, 'undefined undefined'],
  ])('%j on a server with %j -> %s', (spec, configured, expected) => {
    expect(settle(spec, configured)).toBe(expected);
  });

  test('an update that leaves addresses out -> they stay', () => {
    const before = {
      ...port,
      type: 'ClusterIP',
      clusterIP: '10.0.0.1',
      clusterIPs: ['10.0.0.1'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    };
    const made = defaulted(port);
    settleServiceFields(made, service(before));
    expect(made.spec).toMatchObject({ clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], ipFamilies: ['IPv4'] });
    expect(addressesWanted(made.spec!)).toEqual([{ family: 'IPv4', address: '10.0.0.1' }]);
  });

  test('from two families to one and back -> the second address goes and a new one is wanted', () => {
    const dual = {
      ...port,
      type: 'ClusterIP',
      clusterIP: '10.0.0.1',
      clusterIPs: ['10.0.0.1', 'fd00::1'],
      ipFamilies: both,
      ipFamilyPolicy: 'RequireDualStack',
    };
    const single = defaulted({ ...dual, ipFamilyPolicy: 'SingleStack' });
    settleServiceFields(single, service(dual));
    expect(settleServiceFamilies(single.spec!, both)).toEqual([]);
    expect(single.spec).toMatchObject({ clusterIPs: ['10.0.0.1'], ipFamilies: ['IPv4'] });
    const again = defaulted({ ...single.spec, ipFamilyPolicy: 'PreferDualStack' });
    settleServiceFields(again, single);
    settleServiceFamilies(again.spec!, both);
    expect(addressesWanted(again.spec!)).toEqual([
      { family: 'IPv4', address: '10.0.0.1' },
      { family: 'IPv6', address: undefined },
    ]);
  });

  test('an address once held -> may not change', () => {
    const before = defaulted({ ...port, clusterIP: '10.0.0.1' }).spec!;
    const now = defaulted({ ...port, clusterIP: '10.0.0.2' }).spec!;
    expect(clusterIpChangeErrors(now, before)).toMatchObject([
      { field: 'spec.clusterIPs[0]', message: 'Invalid value: ["10.0.0.2"]: may not change once set' },
    ]);
    const headlessNow = defaulted(headless).spec!;
    expect(clusterIpChangeErrors(headlessNow, before)).toHaveLength(1);
    expect(clusterIpChangeErrors(now, defaulted({ type: 'ExternalName', externalName: 'a.b' }).spec)).toEqual([]);
  });
});
