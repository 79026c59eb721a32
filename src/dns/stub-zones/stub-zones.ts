// Zones that other servers answer, and which servers those are. The longest zone that fits a name decides. Changing the
// table keeps what is known about servers that stay.

import { encodeName, isWithin } from '../../base/dns/name.ts';
import { dotPort, parseServerAddress, type StubZone } from '../config/config.ts';
import { ServerSet } from '../upstream/servers.ts';

export interface StubEntry extends StubZone {
  readonly bytes: Uint8Array;
  readonly servers: ServerSet;
}

export class StubZones {
  /** Longest first. */
  #entries: StubEntry[] = [];
  /** Another one for every table. */
  version = 0;

  replace(zones: readonly StubZone[]): void {
    const before = new Map(this.#entries.map((entry) => [JSON.stringify(plain(entry)), entry]));
    this.#entries = zones
      .map((zone) => before.get(JSON.stringify(plain(zone))) ?? makeEntry(zone))
      .sort((a, b) => b.bytes.length - a.bytes.length);
    this.version += 1;
  }

  /** Whether there is a zone below this one, whose names its holder must not take for its own. */
  hasBelow(zone: Uint8Array): boolean {
    return this.#entries.some(({ bytes }) => isBelow(bytes, zone));
  }

  /** Whether a name in this zone lies in a longer one of ours. */
  isBelow(zone: Uint8Array, name: Uint8Array, length: number): boolean {
    const entry = this.find(name, length);
    return entry !== undefined && entry.bytes.length > zone.length;
  }

  get zones(): readonly StubZone[] {
    return this.#entries.map(plain);
  }

  find(name: Uint8Array, length: number): StubEntry | undefined {
    for (const entry of this.#entries) if (isWithin(name, length, entry.bytes)) return entry;
    return undefined;
  }
}

function isBelow(zone: Uint8Array, other: Uint8Array): boolean {
  return zone.length > other.length && isWithin(zone, zone.length, other);
}

function plain({ zone, nameservers, sendsSource, key, tls }: StubZone): StubZone {
  return { zone, nameservers, sendsSource, ...(key ? { key } : {}), ...(tls ? { tls } : {}) };
}

function makeEntry(zone: StubZone): StubEntry {
  const addresses = zone.nameservers.map((text) => parseServerAddress(text, zone.tls ? dotPort : undefined));
  return { ...zone, bytes: encodeName(zone.zone), servers: new ServerSet(addresses, { takesTurns: false }) };
}
