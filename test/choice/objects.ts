// One case of the table as objects of a home: the same service with an address and without one, and its slices.

import {
  type CaseEndpoints,
  type ChoiceCase,
  casePlaces,
} from '../../src/clusterset/rules/choice/testing/choice-case.ts';
import { formatRouting, isNoRouting, routingAnnotation } from '../../src/clusterset/rules/routing/routing.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { claimsOf, importOf } from '../support/imports.ts';

/** Numbers that only the dead have: nothing there takes connections. */
export const firstDead = 200;
/** Behind the port of the service, and behind the same port of those with another number. */
export const tcpPorts = [8080, 8090] as const;
export const grpcPorts = [9000, 9010] as const;

export interface PlacedCase {
  /** In the whole table. */
  readonly index: number;
  readonly title: string;
  readonly given: ChoiceCase;
  readonly withAddress: string;
  readonly withoutAddress: string;
  readonly address: string;
  /** By address of an endpoint. */
  readonly labels: ReadonlyMap<string, string>;
}

export function placeCase(given: ChoiceCase, index: number): PlacedCase {
  const labels = new Map(
    numbered(given, index).flatMap(([{ label }, addresses]) => addresses.map((address) => [address, label] as const)),
  );
  return {
    ...{ index, title: given.title, given, labels },
    ...{ withAddress: `c${index}`, withoutAddress: `n${index}`, address: `243.0.1.${index + 1}` },
  };
}

function numbered(given: ChoiceCase, index: number): [CaseEndpoints, string[]][] {
  const used = new Map<string, number>();
  return given.endpoints.map((each) => {
    const key = `${each.cluster} ${each.state === 'dead'}`;
    const addresses = Array.from({ length: each.count }, () => {
      const host = (used.get(key) ?? (each.state === 'dead' ? firstDead - 1 : 0)) + 1;
      used.set(key, host);
      return `10.${70 + Object.keys(casePlaces).indexOf(each.cluster)}.${index + 1}.${host}`;
    });
    return [each, addresses];
  });
}

export function objectsOf({ index, given, withAddress, withoutAddress, address }: PlacedCase): AnyObject[] {
  const ports = [
    { name: 'tcp', port: 80, protocol: 'TCP' },
    { name: 'grpc', port: 81, protocol: 'TCP' },
  ];
  const annotations: Record<string, string> = isNoRouting(given.routing)
    ? {}
    : { [routingAnnotation]: formatRouting(given.routing) };
  return [
    ...(claimsOf(withAddress, { ips: [address] }) as unknown as AnyObject[]),
    ...[withAddress, withoutAddress].flatMap((name) => {
      const made = importOf(name, {
        ...{ ips: name === withAddress ? [address] : [], ports },
        ...{ type: name === withAddress ? 'ClusterSetIP' : 'Headless' },
        ...(given.isNearestFirst && { trafficDistribution: 'PreferClose' }),
      });
      const slices = numbered(given, index).map(([each, addresses]) => sliceOf(name, each, addresses));
      return [{ ...made, metadata: { ...made.metadata, annotations } }, ...slices];
    }),
  ];
}

function sliceOf(service: string, { label, cluster, zone, state }: CaseEndpoints, addresses: string[]): AnyObject {
  const at = state === 'other' ? 1 : 0;
  const ports = [
    { name: 'tcp', port: tcpPorts[at], protocol: 'TCP' },
    { name: 'grpc', port: grpcPorts[at], protocol: 'TCP' },
  ];
  const conditions = {
    ready: state !== 'unready' && state !== 'draining',
    ...(state === 'draining' && { serving: true, terminating: true }),
  };
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-${label.replace('@', '-at-')}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': service,
        'multicluster.kubernetes.io/source-cluster': cluster,
      },
    },
    addressType: 'IPv4',
    ports: state === 'port' ? [{ name: 'admin', port: 8088, protocol: 'TCP' }] : ports,
    endpoints: addresses.map((address) => ({ addresses: [address], conditions, ...(zone && { zone }) })),
  };
}
