// Which service, cluster, place and way a connection belongs to, by the addresses that the kernel tells. Pure.

import type { ProxyState } from '../state.ts';

export interface FlowOwner {
  readonly service: string;
  readonly cluster: string;
  /** Empty if nobody said. */
  readonly region: string;
  readonly zone: string;
  readonly way: 'direct' | 'gateway';
}

type Owned = Omit<FlowOwner, 'service'>;

interface Known {
  readonly atMs: number;
  /** By endpoint and port. */
  readonly endpoints: ReadonlyMap<string, Owned>;
}

/** Endpoints of a service are read again after these times: working them out for each connection would cost more than the connection. */
const knownMs = 60_000;
const unknownMs = 5_000;
const servicesMax = 5_000;
/** For one service, before those that have gone are forgotten. */
const endpointsMax = 5_000;
const unknownOwner: Owned = { cluster: '', region: '', zone: '', way: 'direct' };

export class FlowOwners {
  readonly #state: Pick<ProxyState, 'addresses' | 'choiceOf' | 'view'>;
  readonly #services = new Map<string, Known>();

  constructor(state: Pick<ProxyState, 'addresses' | 'choiceOf' | 'view'>) {
    this.#state = state;
  }

  /** The service at an address; undefined if there is none. */
  serviceAt(address: string): string | undefined {
    return this.#state.addresses.holderOf(address);
  }

  ownerOf(service: string, endpoint: string, nowMs: number): FlowOwner {
    let known = this.#services.get(service);
    const ageMs = nowMs - (known?.atMs ?? 0);
    const isOld = ageMs < 0 || ageMs > (known?.endpoints.has(endpoint) ? knownMs : unknownMs);
    if (known === undefined || isOld) known = this.#read(service, nowMs);
    return { service, ...(known.endpoints.get(endpoint) ?? unknownOwner) };
  }

  #read(service: string, atMs: number): Known {
    // Endpoints that have gone are still those of connections that are open.
    const endpoints = new Map(this.#services.get(service)?.endpoints);
    if (endpoints.size > endpointsMax) endpoints.clear();
    const { locality } = this.#state.view;
    for (const { backends } of this.#state.choiceOf(service).ports)
      for (const { address, port, cluster, zone, via } of backends) {
        const place = locality.clusters.get(cluster);
        endpoints.set(`${address} ${port}`, {
          ...{ cluster, region: place?.region ?? '' },
          // Of several endpoints behind a gateway the zone that is used is not known.
          zone: (via === undefined ? zone : undefined) ?? place?.zone ?? '',
          way: via === undefined ? 'direct' : 'gateway',
        });
      }
    if (this.#services.size >= servicesMax) this.#services.clear();
    const known = { atMs, endpoints };
    this.#services.set(service, known);
    return known;
  }
}
