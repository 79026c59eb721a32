// The names of one federated service: all its shards in the order that is right for the asking cluster, and each shard by
// its cluster's name. Unhealthy shards are left out, and so, for other clusters, are those without an external address.
// Pure.

import { recordType } from '../../base/dns/codes.ts';
import { tryEncodeName } from '../../base/dns/name.ts';
import { parseAddress } from '../../base/net/ip.ts';
import type { FederationPolicy } from '../../federation/kinds/federation.ts';
import type { ShardRecord } from '../../federation/rules/record.ts';
import { audience, type Order, order, type PackedRecord, type RecordSet, srvData } from '../names/answers.ts';
import type { LeftOut } from '../names/owner-names.ts';
import { spreadToFit } from '../names/spread.ts';

const orderOf: Record<FederationPolicy, Order> = {
  ordered: order.nearestFirst,
  'nearest-only': order.nearestOnly,
  'local-only-if-healthy': order.localOnlyIfHealthy,
};

export interface NamedShard extends ShardRecord {
  readonly cluster: string;
}

export interface FederatedServiceInput {
  /** `myservice.myns.myfederation.svc.federation` */
  readonly name: string;
  /** Sorted by cluster. */
  readonly shards: readonly NamedShard[];
  readonly policy: FederationPolicy;
  readonly ordinalOf: (cluster: string) => number;
}

export interface FederatedNames {
  /** Sets by name; the service's own name comes first. */
  readonly sets: Map<string, RecordSet[]>;
  readonly leftOut: readonly LeftOut[];
}

export function namesOfFederatedService(input: FederatedServiceInput): FederatedNames {
  const sets = new Map<string, RecordSet[]>([[input.name, []]]);
  const leftOut: LeftOut[] = [];
  const healthy = input.shards.filter((shard) => {
    if (!shard.isReady) leftOut.push({ what: `shard in cluster ${shard.cluster}`, why: 'not healthy' });
    else if (shard.externalIPs.length === 0) {
      leftOut.push({ what: `shard in cluster ${shard.cluster} for other clusters`, why: whyNoAddress(shard) });
      if (shard.clusterIPs.length === 0)
        leftOut.push({ what: `shard in cluster ${shard.cluster} for its own clients`, why: 'no address leads there' });
    }
    return shard.isReady;
  });
  const how = orderOf[input.policy];
  put(sets, input.name, addressSets(healthy, how, input));
  put(
    sets,
    input.name,
    srvSets(healthy, how, input, () => true),
  );
  for (const shard of healthy) {
    const name = shardName(shard, input.name);
    put(sets, name, addressSets([shard], order.nearestFirst, input));
  }
  addServiceLabels(sets, healthy, how, input);
  return { sets, leftOut };
}

function whyNoAddress({ hostnames }: NamedShard): string {
  if (hostnames.length === 0) return 'no external address';
  return `its load balancer ${hostnames.join(', ')} has only a name, and no address was found for it`;
}

function put(sets: Map<string, RecordSet[]>, name: string, more: readonly RecordSet[]): void {
  if (!tryEncodeName(name)) return;
  const known = sets.get(name) ?? [];
  sets.set(name, known);
  known.push(...more.filter((set) => set.records.length > 0));
}

function shardName(shard: NamedShard, service: string): string {
  return `${shard.cluster.toLowerCase()}.${service}`;
}

function addressSets(shards: readonly NamedShard[], how: Order, { ordinalOf }: FederatedServiceInput): RecordSet[] {
  return [
    addressSet(recordType.A, how, addresses(shards, 4, ordinalOf)),
    addressSet(recordType.AAAA, how, addresses(shards, 16, ordinalOf)),
  ];
}

/** One address may stand for several clusters: nearest counts, and which that is depends on who asks. */
function addressSet(type: number, how: Order, all: readonly PackedRecord[]): RecordSet {
  const records = spreadToFit(all, ({ rdata }) => rdata.length);
  const hasEqualRecords = new Set(records.map(({ rdata }) => rdata.join())).size < records.length;
  return { type, order: how, records, ...(hasEqualRecords ? { hasEqualRecords } : {}) };
}

function addresses(
  shards: readonly NamedShard[],
  size: number,
  ordinalOf: (cluster: string) => number,
): PackedRecord[] {
  const records: PackedRecord[] = [];
  for (const shard of shards) {
    const cluster = ordinalOf(shard.cluster);
    const own = shard.clusterIPs.length > 0 ? shard.clusterIPs : shard.externalIPs;
    for (const [meant, texts] of [
      [audience.ownCluster, own],
      [audience.otherClusters, shard.externalIPs],
    ] as const) {
      // An address may be spelled in several ways.
      const seen = new Set<string>();
      for (const text of texts) {
        const rdata = parseAddress(text);
        if (rdata?.length !== size || seen.has(rdata.join())) continue;
        seen.add(rdata.join());
        records.push({ cluster, audience: meant, rdata });
      }
    }
  }
  return records;
}

function srvSets(
  shards: readonly NamedShard[],
  how: Order,
  { name, ordinalOf }: FederatedServiceInput,
  isWanted: (label: string) => boolean,
): RecordSet[] {
  const records: PackedRecord[] = [];
  for (const shard of shards) {
    const target = tryEncodeName(shardName(shard, name));
    if (!target) continue;
    const numbers = new Set<number>();
    for (const port of shard.ports) {
      if (port.name === '' || numbers.has(port.port) || !isWanted(`_${port.name}._${port.protocol.toLowerCase()}`))
        continue;
      numbers.add(port.port);
      const rdata = srvData({ port: port.port, target });
      const cluster = ordinalOf(shard.cluster);
      // A shard that others cannot reach is named to its own cluster only.
      const meant = shard.externalIPs.length > 0 ? audience.everybody : audience.ownCluster;
      records.push({ cluster, audience: meant, rdata });
    }
  }
  return [{ type: recordType.SRV, order: how, records: spreadToFit(records, ({ rdata }) => rdata.length) }];
}

function addServiceLabels(
  sets: Map<string, RecordSet[]>,
  shards: readonly NamedShard[],
  how: Order,
  input: FederatedServiceInput,
): void {
  const labels = new Set<string>();
  for (const shard of shards) {
    for (const port of shard.ports) if (port.name !== '') labels.add(`_${port.name}._${port.protocol.toLowerCase()}`);
  }
  for (const label of labels) {
    put(
      sets,
      `${label}.${input.name}`,
      srvSets(shards, how, input, (other) => other === label),
    );
  }
}
