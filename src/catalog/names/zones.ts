// The zones a catalog answers for, and their fixed names: what a zone has besides services.

import { recordType } from '../../base/dns/codes.ts';
import { encodeName } from '../../base/dns/name.ts';
import { parseAddress } from '../../base/net/ip.ts';
import { order, plainRecord, type RecordSet, txtData } from './answers.ts';

export interface Zone {
  /** Its place in the list of zones; stored with every name. */
  readonly id: number;
  /** Without a trailing dot. */
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly ttlSeconds: number;
  /** Which source must have been read before a missing name is really missing. */
  readonly source: ZoneSource;
  /** Addresses of the name server (NS); empty if they are not known. */
  readonly serverAddresses: readonly string[];
}

export type ZoneSource = 'services' | 'imports' | 'federation' | 'peers';

const defaultTtlSeconds = 5;

export interface ZoneSpec {
  readonly name: string;
  readonly source: ZoneSource;
  readonly ttlSeconds?: number;
  readonly serverAddresses?: readonly string[];
}

export function makeZone(id: number, spec: ZoneSpec): Zone {
  const name = spec.name.replace(/\.$/, '').toLowerCase();
  return {
    id,
    name,
    bytes: encodeName(name),
    ttlSeconds: spec.ttlSeconds ?? defaultTtlSeconds,
    source: spec.source,
    serverAddresses: spec.serverAddresses ?? [],
  };
}

const schemaVersion: Record<ZoneSource, string | undefined> = {
  services: '1.1.0',
  imports: '1.0.0',
  federation: undefined,
  peers: undefined,
};

/** In a federation's zone two labels are a service: its server has the zone's own name. */
function serverNameOf({ name, source }: Pick<Zone, 'name' | 'source'>): string {
  return source === 'federation' ? name : `ns.dns.${name}`;
}

/** Every zone says who serves it (NS), and the two of Kubernetes which version of the schema they follow. */
export function fixedNames(zone: Zone): Map<string, RecordSet[]> {
  const server = serverNameOf(zone);
  const names = new Map<string, RecordSet[]>([
    [zone.name, [{ type: recordType.NS, order: order.fixed, records: [plainRecord(encodeName(server))] }]],
  ]);
  if (server !== zone.name) names.set(`dns.${zone.name}`, []).set(server, []);
  names.get(server)?.push(...addressSets(zone.serverAddresses));
  const version = schemaVersion[zone.source];
  if (version !== undefined) {
    const records = [plainRecord(txtData(version))];
    names.set(`dns-version.${zone.name}`, [{ type: recordType.TXT, order: order.fixed, records }]);
  }
  return names;
}

function addressSets(addresses: readonly string[]): RecordSet[] {
  const parsed = addresses.flatMap((text) => parseAddress(text) ?? []);
  const setOf = (type: number, size: number): RecordSet => ({
    type,
    order: order.fixed,
    records: parsed.filter(({ length }) => length === size).map((rdata) => plainRecord(rdata)),
  });
  return [setOf(recordType.A, 4), setOf(recordType.AAAA, 16)].filter(({ records }) => records.length > 0);
}
