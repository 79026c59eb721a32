// The services of the benchmark: as many as asked for, ten endpoints each, in one cluster, or in two with weights.

import type { ServiceImport } from '../../src/clusterset/kinds/service-import.ts';
import { formatRouting, noRouting, routingAnnotation } from '../../src/clusterset/rules/routing/routing.ts';
import type { EndpointSlice } from '../../src/kube/objects/endpoint-slice.ts';

const endpointsPerService = 10;
export const target = { addresses: ['10.77.0.1', '10.77.0.2'], port: 8080 };

export const ipOf = (service: number) => `243.${service >> 16}.${(service >> 8) & 255}.${service & 255}`;

/** Service 1 leads to the server that requests are measured with; the others to addresses nobody has. */
export function backendsOf(service: number): readonly string[] {
  if (service === 1) return target.addresses.slice(0, 1);
  return Array.from({ length: endpointsPerService }, (_, i) => `10.${(service >> 8) & 127}.${service & 255}.${i + 1}`);
}

export function importOf(service: number): ServiceImport {
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name: `s${service}`, namespace: 'bench', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { type: 'ClusterSetIP', ips: [ipOf(service)], ports: [{ name: 'http', protocol: 'TCP', port: 80 }] },
  };
}

export function sliceOf(service: number, unready?: string): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `s${service}-1`,
      namespace: 'bench',
      labels: {
        'multicluster.kubernetes.io/service-name': `s${service}`,
        'multicluster.kubernetes.io/source-cluster': 'far',
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: target.port }],
    endpoints: backendsOf(service).map((address) => ({
      addresses: [address],
      conditions: { ready: address !== unready },
    })),
  };
}

/** Its endpoints lie half in each of two clusters, of which the first gets so many percent. Services 1 and 2 lead to the server by both. */
export function weightedImportOf(service: number, percent: number): ServiceImport {
  const groups = [
    { clusters: ['far'], weight: percent },
    { clusters: ['farther'], weight: 100 - percent },
  ];
  const { metadata, ...rest } = importOf(service);
  const annotations = { [routingAnnotation]: formatRouting({ ...noRouting, groups }) };
  return { ...rest, metadata: { ...metadata, annotations } };
}

export function weightedSlicesOf(service: number, unready?: string): EndpointSlice[] {
  const all = service <= 2 ? target.addresses : backendsOf(service);
  const half = Math.ceil(all.length / 2);
  return (['far', 'farther'] as const).map((cluster, index) => {
    const { metadata, ...rest } = sliceOf(service, unready);
    const labels = { ...metadata.labels, 'multicluster.kubernetes.io/source-cluster': cluster };
    const own = index === 0 ? all.slice(0, half) : all.slice(half);
    const endpoints = own.map((address) => ({ addresses: [address], conditions: { ready: address !== unready } }));
    return { ...rest, metadata: { ...metadata, name: `${metadata.name}-${cluster}`, labels }, endpoints };
  });
}
