// Names that peers gave as their ingress: where each leads, judged by the same rule as an address that a peer names itself. The
// names of one peer are bounded, because each of them costs lookups again and again.

import { isIP } from 'node:net';
import type { Log } from '../../base/log.ts';
import { FollowedNames, type LookUp } from '../../base/net/followed-names.ts';
import type { World } from '../../base/world.ts';
import { ingressBoundsOf, whyNotFound } from '../../peering/kinds/ingress-address.ts';
import type { Peer } from '../../peering/kinds/peer.ts';
import type { Reserved } from '../../peering/rules/link-config.ts';
import type { FoundAddresses } from '../peers/generate.ts';

export interface IngressNamesOptions {
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  readonly lookUp: LookUp;
  readonly reserved: () => Reserved;
  readonly onChange: (services: Iterable<string>) => void;
}

const namesOfPeerMax = 256;

export class IngressNames {
  readonly #options: IngressNamesOptions;
  readonly #followed: FollowedNames;
  /** By peer: its names, and how many services have each. */
  readonly #ofPeers = new Map<string, Map<string, number>>();
  readonly #ofServices = new Map<string, { readonly peer: string; readonly names: readonly string[] }>();

  constructor(options: IngressNamesOptions) {
    const { world, log, lookUp, onChange } = options;
    this.#options = options;
    this.#followed = new FollowedNames({ timers: world.timers, log, lookUp, onChange });
  }

  /** The ingress of this service, in place of the one it had; none if the service is gone. */
  follow(service: string, peer: string, ingress: readonly { readonly address: string }[]): void {
    this.#count(this.#ofServices.get(service), -1);
    const known = this.#ofPeers.get(peer);
    const all = [...new Set(ingress.map(({ address }) => address).filter((address) => isIP(address) === 0))];
    let room = namesOfPeerMax - (known?.size ?? 0);
    const names = all.filter((name) => known?.has(name) || room-- > 0);
    if (names.length === 0) this.#ofServices.delete(service);
    else this.#ofServices.set(service, { peer, names });
    this.#count(this.#ofServices.get(service), 1);
    this.#followed.follow(service, names);
  }

  addressesOf(name: string, peer: string, spec: Peer['spec'] | undefined): FoundAddresses {
    if (this.#ofPeers.get(peer)?.has(name) !== true)
      return { kind: 'found', usable: [], whyNot: [`more than ${namesOfPeerMax} names of the peer ${peer}`] };
    const addresses = this.#followed.addresses(name);
    if (addresses === undefined) return { kind: 'unknown' };
    const bounds = ingressBoundsOf(spec?.allowedIngress, this.#options.reserved());
    const whyNot: string[] = [];
    const usable = addresses.filter((address) => {
      const why = whyNotFound(name, address, bounds);
      if (why !== undefined) whyNot.push(why);
      return why === undefined;
    });
    return { kind: 'found', usable, whyNot };
  }

  whenAsked(patienceMs: number): Promise<void> {
    return this.#followed.whenAsked(patienceMs);
  }

  stop(): void {
    this.#followed.stop();
  }

  #count(service: { readonly peer: string; readonly names: readonly string[] } | undefined, by: 1 | -1): void {
    if (service === undefined) return;
    const names = this.#ofPeers.get(service.peer) ?? new Map<string, number>();
    this.#ofPeers.set(service.peer, names);
    for (const name of service.names) {
      const count = (names.get(name) ?? 0) + by;
      if (count > 0) names.set(name, count);
      else names.delete(name);
    }
    if (names.size === 0) this.#ofPeers.delete(service.peer);
  }
}
