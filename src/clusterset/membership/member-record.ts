// The report of a member at the broker when it joins: a ConfigMap in its own namespace, which every member may read.
// Creating it takes the cluster id: a second home finds it taken. Pure.

import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import { memberRecordName } from '../rules/broker-layout.ts';

export interface MemberRecord {
  /** Uid of the home's kube-system namespace, which tells one cluster from another. */
  readonly homeUid: string;
  /** RFC 3339. */
  readonly joinedAt: string;
  readonly region: string;
  readonly zone: string;
  /** Empty or absent if it named none. */
  readonly network?: string;
  readonly podRanges: readonly string[];
  readonly serviceRanges: readonly string[];
  /** Source ranges of its packets, as other clusters see them; absent if it named none. */
  readonly sourceRanges?: readonly string[];
}

export function memberRecord(namespace: string, record: MemberRecord): Manifest<ConfigMap> {
  const data = {
    'home-uid': record.homeUid,
    'joined-at': record.joinedAt,
    region: record.region,
    zone: record.zone,
    ...(record.network ? { network: record.network } : {}),
    'pod-ranges': record.podRanges.join(','),
    'service-ranges': record.serviceRanges.join(','),
    ...(record.sourceRanges?.length ? { 'source-ranges': record.sourceRanges.join(',') } : {}),
  };
  return manifest(configMapType, { name: memberRecordName, namespace }, { data }) as Manifest<ConfigMap>;
}

export function readMemberRecord({ data = {} }: ConfigMap): MemberRecord {
  return {
    homeUid: data['home-uid'] ?? '',
    joinedAt: data['joined-at'] ?? '',
    region: data['region'] ?? '',
    zone: data['zone'] ?? '',
    ...(data['network'] ? { network: data['network'] } : {}),
    podRanges: listOf(data['pod-ranges']),
    serviceRanges: listOf(data['service-ranges']),
    ...(data['source-ranges'] ? { sourceRanges: listOf(data['source-ranges']) } : {}),
  };
}

function listOf(text: string | undefined): string[] {
  return (text ?? '').split(',').filter((part) => part !== '');
}
