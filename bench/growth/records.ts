// What a member publishes of a service: its record, and its endpoints in slices. A change is told apart by the hostname that
// it brings, first in its slice.

import { type ServiceShard, serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import type { ServiceKey } from '../../src/clusterset/rules/names.ts';
import { publishedRecord } from '../../src/clusterset/rules/shard-record.ts';
import type { EndpointSlice } from '../../src/kube/objects/endpoint-slice.ts';
import { apiVersionOf } from '../../src/kube/objects/object.ts';

export interface SliceRequest {
  readonly service: ServiceKey;
  /** The member's own at the broker. */
  readonly namespace: string;
  readonly addresses: readonly string[];
  /** 0 for the first state. */
  readonly change: number;
  readonly suffix?: string;
}

export function sliceRecord({ service, namespace, addresses, change, suffix = 'a' }: SliceRequest): EndpointSlice {
  const endpoints = addresses.map((address, at) => ({
    addresses: [address],
    conditions: { ready: true },
    ...(change === 0 || at > 0 ? {} : { hostname: `n${change}` }),
  }));
  const ports = [{ name: 'http', protocol: 'TCP' as const, port: 8080 }];
  const name = `${service.name}-${suffix}.${service.namespace}.pods`;
  return publishedRecord({ name, addressType: 'IPv4', endpoints, ports }, { service, namespace });
}

/** 0 if the first endpoint says none. */
export function changeOf(slice: Pick<EndpointSlice, 'endpoints'>): number {
  return Number(/^n(\d+)$/.exec(slice.endpoints?.[0]?.hostname ?? '')?.[1] ?? 0);
}

export function serviceRecord(
  { name, namespace: of }: ServiceKey,
  { namespace, ready, slices }: { readonly namespace: string; readonly ready: number; readonly slices: number },
): ServiceShard {
  return {
    apiVersion: apiVersionOf(serviceShardType),
    kind: serviceShardType.kind,
    metadata: { namespace, name: `${name}.${of}` },
    spec: {
      type: 'ClusterSetIP',
      exportedAt: '2026-01-01T00:00:00Z',
      ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
      readyEndpoints: ready,
      endpointShards: slices,
    },
  } as never;
}
