// Which service, cluster and way a connection belongs to, by the addresses that the kernel tells. Pure.

import type { ProxyState } from '../state.ts';

export interface FlowOwner {
  readonly service: string;
  readonly cluster: string;
  readonly way: 'direct' | 'gateway';
}

interface Known {
  readonly atMs: number;
  /** By endpoint and port. */
  readonly endpoints: ReadonlyMap<string, Omit<FlowOwner, 'service'>>;
}

/** Endpoints of a service are read again after this time: working them out for each connection would cost more than the connection. */
const knownMs = 5_000;
const servicesMax = 5_000;

export class FlowOwners {
  readonly #state: Pick<ProxyState, 'addresses' | 'choiceOf'>;
  readonly #services = new Map<string, Known>();

  constructor(state: Pick<ProxyState, 'addresses' | 'choiceOf'>) {
    this.#state = state;
  }

  /** The service at an address; undefined if there is none. */
  serviceAt(address: string): string | undefined {
    return this.#state.addresses.holderOf(address);
  }

  ownerOf(service: string, endpoint: string, nowMs: number): FlowOwner {
    let known = this.#services.get(service);
    const isOld = known === undefined || nowMs - known.atMs > knownMs;
    if (known === undefined || (isOld && !known.endpoints.has(endpoint))) known = this.#read(service, nowMs);
    return { service, ...(known.endpoints.get(endpoint) ?? { cluster: '', way: 'direct' }) };
  }

  #read(service: string, atMs: number): Known {
    const endpoints = new Map<string, Omit<FlowOwner, 'service'>>();
    for (const { backends } of this.#state.choiceOf(service).ports)
      for (const { address, port, cluster, via } of backends)
        endpoints.set(`${address} ${port}`, { cluster, way: via === undefined ? 'direct' : 'gateway' });
    if (this.#services.size >= servicesMax) this.#services.clear();
    const known = { atMs, endpoints };
    this.#services.set(service, known);
    return known;
  }
}
