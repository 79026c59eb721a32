// The Service kind: its columns, and cluster IPs and node ports taken and given back in the commit that changes the Service.

import { formatIp, parseIp } from '../../base/net/ip.ts';
import type { Random } from '../../base/world.ts';
import { type FieldError, invalid } from '../../kube/objects/field-error.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { applyServiceDefaults } from '../../kube/objects/service-defaults.ts';
import { column, formatLabels, nameColumn, orNone, wideColumn } from '../model/columns.ts';
import type { Admission, Kind } from '../model/kind.ts';
import { invalidObject } from '../model/status.ts';
import { builtinKind } from './builtin.ts';
import { settleNodePorts } from './node-ports.ts';
import {
  addressesWanted,
  clusterIpChangeErrors,
  settleServiceFamilies,
  settleServiceFields,
} from './rules/service-families.ts';
import { validateService } from './rules/service-validation.ts';
import { AddressError, createServiceAddresses, type ServiceAddresses } from './service-addresses.ts';

export interface ServiceKindOptions {
  /** CIDRs, the preferred family first: `['10.96.0.0/16', 'fd00:96::/112']`. */
  readonly serviceRanges: readonly string[];
  readonly random: Random;
}

export function createServiceKind(options: ServiceKindOptions): Kind {
  const addresses = createServiceAddresses(options.serviceRanges, options.random);
  return builtinKind<Service>({
    ...serviceType,
    shortNames: ['svc'],
    categories: ['all'],
    nameRule: 'dns1035Label',
    columns: [
      nameColumn,
      column<Service>('Type', (service) => service.spec?.type ?? ''),
      column<Service>('Cluster-IP', (service) => orNone(service.spec?.clusterIP)),
      column<Service>('External-IP', externalAddresses),
      column<Service>('Port(s)', formatPorts),
      wideColumn<Service>('Selector', (service) => formatLabels(service.spec?.selector)),
    ],
    applyDefaults: applyServiceDefaults,
    validate: validateService,
    selectableFields: {
      'spec.clusterIP': (service) => service.spec?.clusterIP ?? '',
      'spec.type': (service) => service.spec?.type ?? '',
    },
    behaviour: { isMetadataInStatus: true, admit: (admission) => admitService(admission, addresses, options.random) },
  });
}

async function admitService(admission: Admission, addresses: ServiceAddresses, random: Random): Promise<void> {
  const service = admission.object as unknown as Service;
  const previous = admission.previous as unknown as Service | undefined;
  if (admission.operation === 'delete') {
    await settleNodePorts(admission, random);
    return releaseOthers(admission, previous ?? service, [], addresses);
  }
  settleServiceFields(service, previous);
  refuse(admission, await settleNodePorts(admission, random));
  const spec = service.spec ?? {};
  refuse(admission, [
    ...settleServiceFamilies(spec, addresses.families),
    ...clusterIpChangeErrors(spec, previous?.spec),
  ]);
  const held = await takeWanted(admission, service, previous, addresses);
  if (held.length > 0) {
    spec.clusterIPs = held;
    spec.clusterIP = held[0];
  }
  if (previous !== undefined) await releaseOthers(admission, previous, held, addresses);
}

async function takeWanted(
  admission: Admission,
  service: Service,
  previous: Service | undefined,
  addresses: ServiceAddresses,
): Promise<string[]> {
  const owner = ownerOf(service);
  const before = heldBy(previous);
  const held: string[] = [];
  for (const { family, address } of addressesWanted(service.spec ?? {})) {
    try {
      if (address === undefined) held.push(await addresses.takeAny(admission.store, { family, owner }, admission));
      else {
        if (!before.includes(address)) await addresses.take(admission.store, { address, owner }, admission);
        held.push(address);
      }
    } catch (error) {
      if (!(error instanceof AddressError)) throw error;
      refuse(admission, [invalid('spec.clusterIPs', service.spec?.clusterIPs ?? [], error.message)]);
    }
  }
  return held;
}

async function releaseOthers(
  admission: Admission,
  service: Service,
  kept: readonly string[],
  addresses: ServiceAddresses,
): Promise<void> {
  for (const address of heldBy(service)) {
    if (kept.includes(address)) continue;
    await addresses.release(admission.store, { address, owner: ownerOf(service) }, admission);
  }
}

/** In canonical form; a headless Service holds none. */
function heldBy(service: Service | undefined): string[] {
  const ips = (service?.spec?.clusterIPs ?? []).map(parseIp);
  return ips.filter((ip) => ip !== undefined).map(formatIp);
}

function ownerOf(service: Service): string {
  return `${service.metadata.namespace}/${service.metadata.name}`;
}

function refuse(admission: Admission, errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  throw invalidObject({ group: '', kind: 'Service', name: admission.object.metadata.name }, errors);
}

function externalAddresses(service: Service): string {
  const { type, externalName, externalIPs = [] } = service.spec ?? {};
  if (type === 'ExternalName') return orNone(externalName);
  const ingress = (service.status?.loadBalancer?.ingress ?? []).map((each) => each.ip ?? each.hostname ?? '');
  const all = type === 'LoadBalancer' ? [...ingress, ...externalIPs] : externalIPs;
  if (all.length > 0) return all.join(',');
  return type === 'LoadBalancer' ? '<pending>' : '<none>';
}

function formatPorts(service: Service): string {
  const texts = (service.spec?.ports ?? []).map(({ port, nodePort, protocol }) =>
    nodePort === undefined ? `${port}/${protocol}` : `${port}:${nodePort}/${protocol}`,
  );
  return orNone(texts.join(','));
}
