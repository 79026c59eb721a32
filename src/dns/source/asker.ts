// The client's place: from the option of a trusted server; unknown if another client sent the option, or if it cannot
// be read; here without an option. The same few options come again and again, so what they mean is remembered by
// their bytes.

import { hashBytes } from '../../base/dns/name.ts';
import type { PlacesReader, Standpoint } from '../../catalog/packed/places.ts';
import type { Answer } from '../message/answer.ts';
import type { Query } from '../message/wire.ts';
import { decodeSource } from './source-option.ts';
import { sayDropped, type TrustedServers } from './trusted-servers.ts';

const rememberedMax = 10_000;
/** The sender of the option is another server, and no pod of this cluster: no cluster is its own. */
const nowhere: Standpoint = { cluster: 0, zone: 0, region: 0 };

export interface AskerFinderOptions {
  readonly trusted: TrustedServers;
  readonly places: PlacesReader;
  /** For those who say nothing: the cluster this server stands in, if it stands in one. */
  readonly local: Standpoint;
}

export function createAskerFinder({
  trusted,
  places,
  local,
}: AskerFinderOptions): (query: Query, answer: Answer) => Standpoint {
  const remembered = new Map<number, Remembered>();

  function lookUp(payload: Uint8Array): Standpoint {
    const source = decodeSource(payload);
    if (!source) return nowhere;
    const cluster = places.find('c', source.cluster);
    const known = places.standAt(cluster);
    // The place that the server reports counts only where ours is unknown.
    const region = known.region || places.find('r', source.region ?? '');
    const zone = known.zone || places.find('z', `${source.region ?? ''}/${source.zone ?? ''}`);
    return { cluster, zone, region };
  }

  return (query, answer) => {
    if (query.sourceLength < 0) return local;
    if (!trusted.isBelieved(query)) {
      sayDropped(answer);
      return nowhere;
    }
    const { packet, sourceAt, sourceLength } = query;
    const hash = hashBytes(packet, sourceAt, sourceAt + sourceLength);
    const known = remembered.get(hash);
    if (known && known.version === places.version && isAt(known.payload, packet, sourceAt, sourceLength)) {
      return known.standpoint;
    }
    if (remembered.size > rememberedMax) remembered.clear();
    const payload = Uint8Array.prototype.slice.call(packet, sourceAt, sourceAt + sourceLength);
    const standpoint = lookUp(payload);
    remembered.set(hash, { payload, standpoint, version: places.version });
    return standpoint;
  };
}

interface Remembered {
  /** Two payloads may have one hash: the last of them is remembered. */
  readonly payload: Uint8Array;
  readonly standpoint: Standpoint;
  readonly version: number;
}

function isAt(payload: Uint8Array, packet: Uint8Array, at: number, length: number): boolean {
  if (payload.length !== length) return false;
  for (let i = 0; i < length; i++) if (payload[i] !== packet[at + i]) return false;
  return true;
}
