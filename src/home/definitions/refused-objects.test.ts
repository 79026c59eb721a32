// Objects of the kinds in deploy/crds that are refused, with the exact path and text of each problem.

import { expect, test } from 'vitest';
import { create } from './testing/deployed-kinds.ts';

test.each<[string, string, string[]]>([
  [
    'ServiceExport',
    'spec: { exportedLabels: { a: 1 }, weight: 3 }',
    [
      'unknown field spec.weight',
      'spec.exportedLabels.a: Invalid value: "integer": spec.exportedLabels.a in body must be of type string: "integer"',
    ],
  ],
  [
    'ClusterProfile',
    'spec: { displayName: 7, token: secret }',
    [
      'unknown field spec.token',
      'spec.clusterManager: Required value',
      'spec.displayName: Invalid value: "integer": spec.displayName in body must be of type string: "integer"',
    ],
  ],
  [
    'ServiceImport',
    'spec: { ports: [{ port: 0 }, { name: x }], ips: [1.2.3.4, 1.2.3.5, 1.2.3.6] }',
    [
      'spec.type: Required value',
      'spec.ports[0].port: Invalid value: 0: spec.ports[0].port in body should be greater than or equal to 1',
      'spec.ports[1].port: Required value',
      'spec.ips: Too many: 3: must have at most 2 items',
    ],
  ],
  [
    'ServiceImport',
    'spec: { type: ExternalName, ips: [here] }',
    [
      'spec.type: Unsupported value: "ExternalName": supported values: "ClusterSetIP", "Headless"',
      'spec.ips[0]: Invalid value: "": "spec.ips[0]" must validate at least one schema (anyOf)',
      'spec.ips[0]: Invalid value: "here": spec.ips[0] in body must be of type ipv4: "here"',
    ],
  ],
  [
    'ClusterProperty',
    'spec: { value: "" }',
    ['spec.value: Invalid value: "": spec.value in body should be at least 1 chars long'],
  ],
  [
    'ClusterSet',
    'spec: { ports: both, lease: { renewSeconds: 0 }, addressRanges: { peers: [10.0.0.0/40] } }',
    [
      'spec.ports: Unsupported value: "both": supported values: "union", "intersection"',
      'spec.lease.renewSeconds: Invalid value: 0: spec.lease.renewSeconds in body should be greater than or equal to 1',
      'spec.addressRanges.peers[0]: Invalid value: "10.0.0.0/40": spec.addressRanges.peers[0] in body must be of type cidr: "10.0.0.0/40"',
    ],
  ],
  [
    'Cluster',
    "spec: { resolver: { endpoint: 'http://a' } }",
    [
      'spec.namespace: Required value',
      `spec.resolver.endpoint: Invalid value: "http://a": spec.resolver.endpoint in body should match '^https://'`,
    ],
  ],
  [
    'ServiceShard',
    `
      metadata: { name: checkout }
      spec: { type: Headless, exportedAt: yesterday, ports: [{ port: 80 }, { port: 80, protocol: TCP }], loadBalancer: [{}], onStale: Drop }`,
    [
      `metadata.name: Invalid value: "checkout": metadata.name in body should match '^[a-z]([-a-z0-9]{0,61}[a-z0-9])?\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'`,
      'spec.exportedAt: Invalid value: "yesterday": spec.exportedAt in body must be of type date-time: "yesterday"',
      'spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}',
      'spec.loadBalancer[0]: Invalid value: "": "spec.loadBalancer[0]" must validate at least one schema (anyOf)',
      'spec.loadBalancer[0].ip: Required value',
      'spec.onStale: Unsupported value: "Drop": supported values: "Withdraw", "NotReady", "Keep"',
    ],
  ],
  [
    'ServiceAccessPolicy',
    'spec: { services: [], from: [{ cluster: West, namespaces: [] }, { cluster: west }, { cluster: west }] }',
    [
      'spec.services: Invalid value: 0: spec.services in body should have at least 1 items',
      'spec.from[2]: Duplicate value: {"cluster":"west"}',
      `spec.from[0].cluster: Invalid value: "West": spec.from[0].cluster in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'`,
      'spec.from[0].namespaces: Invalid value: 0: spec.from[0].namespaces in body should have at least 1 items',
    ],
  ],
  [
    'ServiceAccessPolicy',
    'spec: { from: [] }',
    ['spec.from: Invalid value: 0: spec.from in body should have at least 1 items'],
  ],
  ['ServiceAccessPolicy', 'spec: { services: [db] }', ['spec.from: Required value']],
  [
    'ServiceExportPolicy',
    'spec: { serviceSelector: { matchExpressions: [{ key: a, operator: Like }] } }',
    [
      'spec.serviceSelector.matchExpressions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", "DoesNotExist"',
    ],
  ],
  [
    'ServiceImportPolicy',
    'spec: { clusters: [{ clusters: [East], weight: 101 }], services: [Checkout] }',
    [
      `spec.clusters[0].clusters[0]: Invalid value: "East": spec.clusters[0].clusters[0] in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'`,
      'spec.clusters[0].weight: Invalid value: 101: spec.clusters[0].weight in body should be less than or equal to 100',
      `spec.services[0]: Invalid value: "Checkout": spec.services[0] in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'`,
    ],
  ],
  [
    'TrafficShift',
    'spec: { service: Checkout, from: east, steps: [0, 101], every: soon }',
    [
      'spec.to: Required value',
      `spec.service: Invalid value: "Checkout": spec.service in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'`,
      'spec.steps[0]: Invalid value: 0: spec.steps[0] in body should be greater than or equal to 1',
      'spec.steps[1]: Invalid value: 101: spec.steps[1] in body should be less than or equal to 100',
      `spec.every: Invalid value: "soon": spec.every in body should match '^[0-9]{1,6}[smh]$'`,
    ],
  ],
  [
    'FederatedService',
    'spec: { template: { spec: { ports: [], clusterIP: 10.0.0.1 } } }',
    [
      'spec.template.spec.ports: Invalid value: 0: spec.template.spec.ports in body should have at least 1 items',
      'spec.template.spec.clusterIP: Unsupported value: "10.0.0.1": supported values: "None"',
    ],
  ],
  [
    'Federation',
    'spec: { policy: random, source: { optionCode: 8 }, public: { domain: a.b, provider: { type: Mail, webhook: { url: "ftp://a" } } } }',
    [
      'spec.policy: Unsupported value: "random": supported values: "ordered", "nearest-only", "local-only-if-healthy"',
      'spec.source.optionCode: Invalid value: 8: spec.source.optionCode in body should be greater than or equal to 65001',
      'spec.public.provider.type: Unsupported value: "Mail": supported values: "RFC2136", "Webhook", "DNSEndpoint"',
      `spec.public.provider.webhook.url: Invalid value: "ftp://a": spec.public.provider.webhook.url in body should match '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$'`,
    ],
  ],
  [
    'AddressClaim',
    "metadata: { name: 'fd00--1' }\nspec: { address: 243.0.0.1, owner: { kind: ServiceImport } }",
    [
      `metadata.name: Invalid value: "fd00--1": metadata.name in body should match '^([0-9]{1,3}(\\.[0-9]{1,3}){3}|[0-9a-f]{1,4}(-[0-9a-f]{1,4}){7})$'`,
      'spec.owner.name: Required value',
    ],
  ],
  [
    'Peer',
    'spec: { address: nowhere, trust: { domain: a.b } }',
    [
      String.raw`spec.address: Invalid value: "nowhere": spec.address in body should match '^(https://)?(\[[0-9a-fA-F:.]+\]|[^:\[\]/\s]+):[0-9]{1,5}$'`,
      'spec.trust: Invalid value: "": "spec.trust" must validate one and only one schema (oneOf). Found none valid',
      'spec.trust.bundle: Required value',
    ],
  ],
  [
    'PeerExport',
    'spec: { peers: [] }',
    [
      'spec: Invalid value: "": "spec" must validate at least one schema (anyOf)',
      'spec.services: Required value',
      'spec.peers: Invalid value: 0: spec.peers in body should have at least 1 items',
    ],
  ],
  [
    'PeerService',
    'spec: { peer: p, endpoints: [{ address: a, port: 70000 }] }',
    [
      'spec.id: Required value',
      'spec.endpoints[0].port: Invalid value: 70000: spec.endpoints[0].port in body should be less than or equal to 65535',
    ],
  ],
])('%s: %s -> refused with exact paths', (kind, text, expected) => {
  expect(create(kind, text).wrong).toEqual(expected);
});
