// The zones a catalog answers for, and their fixed names: what a zone has besides services.

import { encodeName } from '../base/dns/name.ts';
import { order, plainRecord, type RecordSet, recordType, txtData } from './answers.ts';

export interface Zone {
  /** Its place in the list of zones; stored with every name. */
  readonly id: number;
  /** Without a trailing dot. */
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly ttlSeconds: number;
  /** Which source must have been read before a missing name is really missing. */
  readonly source: ZoneSource;
}

export type ZoneSource = 'services' | 'imports' | 'federation' | 'peers';

const defaultTtlSeconds = 5;

export interface ZoneSpec {
  readonly name: string;
  readonly source: ZoneSource;
  readonly ttlSeconds?: number;
}

export function makeZone(id: number, spec: ZoneSpec): Zone {
  const name = spec.name.replace(/\.$/, '').toLowerCase();
  return {
    id,
    name,
    bytes: encodeName(name),
    ttlSeconds: spec.ttlSeconds ?? defaultTtlSeconds,
    source: spec.source,
  };
}

const schemaVersion: Record<ZoneSource, string | undefined> = {
  services: '1.1.0',
  imports: '1.0.0',
  federation: undefined,
  peers: undefined,
};

/** In a federation's zone two labels are a service: its server has the zone's own name. */
export function serverNameOf({ name, source }: Pick<Zone, 'name' | 'source'>): string {
  return source === 'federation' ? name : `ns.dns.${name}`;
}

/** Every zone says who serves it (NS), and the two of Kubernetes which version of the schema they follow. */
export function fixedNames(zone: Zone): Map<string, RecordSet[]> {
  const server = serverNameOf(zone);
  const names = new Map<string, RecordSet[]>([
    [zone.name, [{ type: recordType.NS, order: order.fixed, records: [plainRecord(encodeName(server))] }]],
  ]);
  if (server !== zone.name) names.set(`dns.${zone.name}`, []).set(server, []);
  const version = schemaVersion[zone.source];
  if (version !== undefined) {
    const records = [plainRecord(txtData(version))];
    names.set(`dns-version.${zone.name}`, [{ type: recordType.TXT, order: order.fixed, records }]);
  }
  return names;
}
