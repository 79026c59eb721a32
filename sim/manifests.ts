// Objects as a person would write them, for scenarios: a Service, its slices, its export.

import { type ServiceExport, serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import type { Client } from '../src/kube/client/client.ts';
import { type EndpointSlice, endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import type { Lease } from '../src/kube/objects/lease.ts';
import { type Service, type ServiceSpec, serviceType } from '../src/kube/objects/service.ts';

export function service(key: string, spec: ServiceSpec = {}): Service {
  const [namespace, name] = key.split('/') as [string, string];
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name },
    spec: { ports: [{ name: 'http', port: 80 }], selector: { app: name }, ...spec },
  };
}

export function serviceExport(
  key: string,
  more: { annotations?: Record<string, string>; spec?: ServiceExport['spec'] } = {},
): ServiceExport {
  const [namespace, name] = key.split('/') as [string, string];
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceExport',
    metadata: { namespace, name, ...(more.annotations === undefined ? {} : { annotations: more.annotations }) },
    ...(more.spec === undefined ? {} : { spec: more.spec }),
  };
}

export interface SliceOptions {
  /** `10.1.0.1`, with `!` in front for one that is not ready, `host@10.1.0.1` for one with a hostname. */
  readonly endpoints: readonly string[];
  readonly ports?: EndpointSlice['ports'];
  readonly suffix?: string;
  readonly addressType?: EndpointSlice['addressType'];
}

export function slice(key: string, options: SliceOptions): EndpointSlice {
  const [namespace, name] = key.split('/') as [string, string];
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace,
      name: `${name}-${options.suffix ?? 'a'}`,
      labels: { 'kubernetes.io/service-name': name, 'endpointslice.kubernetes.io/managed-by': 'somebody' },
    },
    addressType: options.addressType ?? 'IPv4',
    endpoints: options.endpoints.map((text) => {
      const [, isNot, hostname, address] = /^(!?)(?:([^@]+)@)?(.+)$/.exec(text)!;
      return {
        addresses: [address!],
        conditions: { ready: isNot === '', serving: isNot === '', terminating: false },
        nodeName: 'node-1',
        ...(hostname === undefined ? {} : { hostname }),
      };
    }),
    ports: options.ports ?? [{ name: 'http', protocol: 'TCP', port: 8080 }],
  };
}

/** A service with endpoints, exported. */
export async function exportService(
  client: Client,
  key: string,
  options: {
    readonly spec?: ServiceSpec;
    readonly endpoints: readonly string[];
    readonly ports?: EndpointSlice['ports'];
  },
): Promise<void> {
  await client.create(serviceType, service(key, options.spec));
  await client.create(endpointSliceType, slice(key, options));
  await client.create(serviceExportType, serviceExport(key));
}

/** As a node's proxy keeps it; nobody renews this one. */
export function proxyLease({ nowMs }: { readonly nowMs: number }, seconds: number): Lease {
  const renewTime = new Date(1767225600000 + nowMs).toISOString().replace('Z', '000Z');
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace: 'portolan-system', name: 'portolan-proxy-node-1', labels: { 'portolan.dev/part': 'proxy' } },
    spec: { holderIdentity: 'node-1', leaseDurationSeconds: seconds, renewTime },
  };
}
