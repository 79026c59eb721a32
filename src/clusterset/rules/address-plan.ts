// The zones and ranges that belong to the clusterset, as a member's home has them: part of the ConfigMap with its DNS
// options. Peering refuses peers that claim any of it, and takes the addresses of their services from `peers`; names of
// external services take theirs from `external`. Pure.

import { type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import type { ConfigMap } from '../../kube/objects/config-map.ts';
import type { ServiceImport } from '../kinds/service-import.ts';

export interface AddressPlan {
  /** Suffixes of the set's federations. */
  readonly federationZones: readonly string[];
  /** By federation: base64 of PEM, by which its authority is known to resolvers. */
  readonly authorities: Readonly<Record<string, string>>;
  readonly ranges: {
    /** Those of the ClusterSet first; then former ones that imports still have addresses of. */
    readonly clusterSet: readonly string[];
    readonly peers: readonly string[];
    readonly external: readonly string[];
  };
}

export function addressPlanData({ federationZones, authorities, ranges }: AddressPlan): Record<string, string> {
  return {
    federationZones: federationZones.join(','),
    federationAuthorities: JSON.stringify(authorities),
    clusterSetRanges: ranges.clusterSet.join(','),
    peersRanges: ranges.peers.join(','),
    externalRanges: ranges.external.join(','),
  };
}

export function withFormerRanges(plan: AddressPlan, former: readonly string[]): AddressPlan {
  const { ranges } = plan;
  return { ...plan, ranges: { ...ranges, clusterSet: [...new Set([...ranges.clusterSet, ...former])] } };
}

export function hasAddressIn(imports: Iterable<ServiceImport>, text: string): boolean {
  const range = parseRange(text);
  if (range === undefined) return false;
  for (const { spec } of imports)
    for (const address of spec?.ips ?? []) {
      const ip = parseIp(address);
      if (ip !== undefined && isInRange(ip, range)) return true;
    }
  return false;
}

/** Undefined for a home whose agent wrote none. */
export function readAddressPlan({ data }: Pick<ConfigMap, 'data'>): AddressPlan | undefined {
  if (data?.['peersRanges'] === undefined) return undefined;
  const list = (key: string) => (data[key] ?? '').split(',').filter((text) => text !== '');
  const rangesIn = (key: string) => list(key).filter((text) => parseRange(text) !== undefined);
  return {
    federationZones: list('federationZones'),
    authorities: textsIn(data['federationAuthorities']),
    ranges: {
      clusterSet: rangesIn('clusterSetRanges'),
      peers: rangesIn('peersRanges'),
      external: rangesIn('externalRanges'),
    },
  };
}

/** Ranges that agents take virtual addresses from; none where no agent has written any. */
export function allocatedRanges(written: Pick<ConfigMap, 'data'>): IpRange[] {
  const { clusterSet = [], peers = [], external = [] } = readAddressPlan(written)?.ranges ?? {};
  return [...clusterSet, ...peers, ...external].flatMap((text) => parseRange(text) ?? []);
}

/** Empty if it is not an object of texts. */
function textsIn(text: string | undefined): Record<string, string> {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    const entries = Object.entries(value ?? {});
    return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return {};
  }
}
