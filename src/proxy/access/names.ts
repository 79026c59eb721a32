// Names in the table of access, and the addresses by which it is proved that the table is enforced. Pure.

import { digestOf } from '../../kube/objects/bounded-name.ts';
import type { Element } from '../nft/port-plan.ts';

export const accessTableName = 'inet portolan-access';

/** As long as names of nft may be with a prefix and the version. */
const idLengthMax = 200;

function plain(cluster: string): string {
  return cluster.length <= idLengthMax ? cluster : `x-${digestOf(cluster)}`;
}

/** The set of tuples for one cluster, without the version. */
export function setOf(cluster: string): string {
  return `to-${plain(cluster)}-v`;
}

/** The chain of packets from one cluster; without a name, of those that several clusters claim. */
export function chainOf(cluster: string): string {
  return cluster === '' ? 'from.several' : `from-${plain(cluster)}`;
}

/** Loopback addresses that stand for a caller and for a Pod with one exported port and one that is not. */
export const probe = {
  IPv4: { from: '127.66.0.1', to: '127.66.0.2' },
  IPv6: { from: '::1', to: '::1' },
  exported: 47_166,
  refused: 47_167,
} as const;

const probedFamilies = [
  { version: 4, ...probe.IPv4 },
  { version: 6, ...probe.IPv6 },
] as const;

export const probeElements: readonly Element[] = probedFamilies.flatMap(({ version, from, to }) => [
  { map: `from${version}`, key: from, value: `goto ${chainOf('')}` },
  { map: `host${version}`, key: `${to} . tcp . ${probe.exported}`, value: '' },
  { map: `host${version}`, key: `${to} . tcp . ${probe.refused}`, value: '' },
  { map: `every${version}`, key: `${to} . tcp . ${probe.exported}`, value: '' },
]);
