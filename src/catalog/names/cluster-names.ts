// The names of one Service under cluster.local, as Kubernetes' DNS specification 1.1.0 says. Pure.

import { recordType } from '../../base/dns/codes.ts';
import { tryEncodeName } from '../../base/dns/name.ts';
import type { EndpointFacts } from '../facts/facts.ts';
import { order, plainRecord } from './answers.ts';
import {
  addAddresses,
  addServicePorts,
  addSrv,
  endpointName,
  endpointNames,
  noteUnready,
  type OwnerInput,
  OwnerNames,
  type SrvSource,
} from './owner-names.ts';

export interface ClusterNamesOptions {
  /** A service without a ready endpoint has no names, so that search lists go on to the next. */
  readonly ignoresEmpty: boolean;
}

export function namesOfService(input: OwnerInput, { ignoresEmpty }: ClusterNamesOptions): OwnerNames {
  const names = new OwnerNames(input.name);
  if (!input.owner.isPresent) return names;
  if (ignoresEmpty && input.owner.kind !== 'ExternalName' && !hasReady(input)) {
    names.leftOut.push({ what: input.name, why: 'no endpoint is ready, and empty services are ignored' });
    return names;
  }
  if (input.owner.kind === 'ExternalName') addAlias(names, input);
  else if (input.owner.kind === 'Headless') addHeadless(names, input);
  else addClusterIp(names, input);
  return names;
}

function hasReady({ slices }: OwnerInput): boolean {
  return slices.some(({ endpoints }) => endpoints.some(({ isReady }) => isReady));
}

function addAlias(names: OwnerNames, { owner, name }: OwnerInput): void {
  const target = owner.externalName === '' ? undefined : tryEncodeName(owner.externalName);
  if (!target) {
    names.leftOut.push({ what: name, why: `externalName ${JSON.stringify(owner.externalName)} is not a domain name` });
    return;
  }
  names.add(name, { type: recordType.CNAME, order: order.fixed, records: [plainRecord(target)] });
}

function addClusterIp(names: OwnerNames, input: OwnerInput): void {
  const { owner, name } = input;
  names.exist(name);
  addAddresses(
    names,
    name,
    owner.ips.map((address) => ({ address, cluster: 0 })),
    order.fixed,
  );
  addServicePorts(names, name, owner.ports);
  for (const ip of owner.ips) names.point(ip, name);
  if (!input.hasHostnames) return;
  const ready = input.slices.flatMap(({ endpoints }) => endpoints.filter(({ isReady }) => isReady));
  addHosts(
    names,
    name,
    ready.filter(({ hostname }) => hostname !== ''),
  );
}

function addHeadless(names: OwnerNames, { slices, name }: OwnerInput): void {
  const ready: EndpointFacts[] = [];
  const sources: SrvSource[] = [];
  for (const slice of slices) {
    for (const endpoint of slice.endpoints) {
      if (!endpoint.isReady) {
        noteUnready(names, slice, endpoint);
        continue;
      }
      ready.push(endpoint);
      const target = `${endpointName(endpoint)}.${name}`;
      for (const port of slice.ports) sources.push({ port, target, cluster: 0 });
    }
  }
  addAddresses(names, name, recordsOf(ready), order.rotating);
  addHosts(names, name, ready);
  addSrv(names, name, { sources });
}

/** A name for each endpoint, and its address points back at it. */
function addHosts(names: OwnerNames, name: string, ready: readonly EndpointFacts[]): void {
  const byHost = new Map<string, EndpointFacts[]>();
  for (const endpoint of ready) {
    for (const label of endpointNames(endpoint)) {
      const host = `${label}.${name}`;
      const sharing = byHost.get(host);
      if (sharing) sharing.push(endpoint);
      else byHost.set(host, [endpoint]);
    }
  }
  for (const [host, endpoints] of byHost) {
    addAddresses(names, host, recordsOf(endpoints), order.fixed);
    for (const endpoint of endpoints)
      if (host === `${endpointName(endpoint)}.${name}`) names.point(endpoint.address, host);
  }
}

function recordsOf(endpoints: readonly EndpointFacts[]) {
  return endpoints.map(({ address }) => ({ address, cluster: 0 }));
}
