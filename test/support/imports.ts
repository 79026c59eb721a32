// ServiceImports and their slices as literal objects, for homes whose tests need no agent.

import type { AddressClaim } from '../../src/addresses/address-claim.ts';
import { claimFor } from '../../src/addresses/claim.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';

export interface ImportSpec {
  readonly ips: readonly string[];
  readonly ports: readonly { readonly name?: string; readonly port: number; readonly protocol?: string }[];
  readonly affinitySeconds?: number;
  readonly [field: string]: unknown;
}

export function importOf(name: string, { affinitySeconds, ...spec }: ImportSpec): AnyObject {
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name, namespace: 'shop' },
    spec: {
      type: 'ClusterSetIP',
      ...spec,
      ...(affinitySeconds === undefined
        ? {}
        : { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: affinitySeconds } } }),
    },
  };
}

/** The claims of its addresses. */
export function claimsOf(name: string, { ips }: Pick<ImportSpec, 'ips'>): AddressClaim[] {
  return ips.map((ip) => claimFor({ kind: 'ServiceImport', namespace: 'shop', name }, ip));
}

export interface SliceSpec {
  readonly service: string;
  readonly cluster: string;
  readonly addresses: readonly string[];
  readonly ports: readonly { readonly name?: string; readonly port: number; readonly protocol?: string }[];
  readonly unready?: readonly string[];
  readonly zone?: string;
}

export function sliceOf({ service, cluster, addresses, ports, unready = [], zone }: SliceSpec): AnyObject {
  const isV6 = [...addresses, ...unready].some((address) => address.includes(':'));
  const endpoint = (ready: boolean) => (address: string) => ({
    addresses: [address],
    conditions: { ready },
    ...(zone === undefined ? {} : { zone }),
  });
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-${cluster}-${isV6 ? 6 : 4}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': service,
        'multicluster.kubernetes.io/source-cluster': cluster,
      },
    },
    addressType: isV6 ? 'IPv6' : 'IPv4',
    ports: ports.map((port) => ({ protocol: 'TCP', ...port })),
    endpoints: [...addresses.map(endpoint(true)), ...unready.map(endpoint(false))],
  };
}
