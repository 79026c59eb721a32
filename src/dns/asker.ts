// Where the one who asks stands: what an allowed peer says in its option, else here. The same few options come again and
// again, so what they mean is remembered by their bytes.

import type { PlacesReader, Standpoint } from '../catalog/places.ts';
import type { Peers } from './peers.ts';
import { decodeSource } from './source-option.ts';
import type { Query } from './wire.ts';

const rememberedMax = 10_000;

export interface AskerFinderOptions {
  readonly peers: Peers;
  readonly places: PlacesReader;
  /** For those who say nothing, or may not say anything: the cluster this server stands in, if it stands in one. */
  readonly local: Standpoint;
}

export function createAskerFinder({ peers, places, local }: AskerFinderOptions): (query: Query) => Standpoint {
  const remembered = new Map<string, { standpoint: Standpoint; version: number }>();

  function lookUp(payload: Uint8Array): Standpoint {
    const source = decodeSource(payload);
    if (!source) return local;
    const cluster = places.find('c', source.cluster);
    const known = places.standAt(cluster);
    // What the peer says of its place counts only where we know nothing ourselves.
    const region = known.region || places.find('r', source.region ?? '');
    const zone = known.zone || places.find('z', `${source.region ?? ''}/${source.zone ?? ''}`);
    return { cluster, zone, region };
  }

  return (query) => {
    if (query.sourceLength < 0 || !peers.isBelieved(query)) return local;
    if (remembered.size > rememberedMax) remembered.clear();
    const payload = query.packet.subarray(query.sourceAt, query.sourceAt + query.sourceLength);
    const key = Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString('latin1');
    const known = remembered.get(key);
    if (known && known.version === places.version) return known.standpoint;
    const standpoint = lookUp(payload);
    remembered.set(key, { standpoint, version: places.version });
    return standpoint;
  };
}
