// The views of all proxies: sets of resources shared by all, the endpoints of clusterset services once for each place that
// has proxies, and what is made for one proxy alone.

import type { Place } from '../../clusterset/rules/choice/locality.ts';
import { identityUri, type ProxyIdentity } from '../identity/proxy-identity.ts';
import { ResourceSet } from './resource-set.ts';
import { View } from './view.ts';

export interface ViewRequest {
  readonly proxy: ProxyIdentity;
  readonly place: Place;
  /** A sidecar that takes connections to clusterset addresses itself, in place of the kernel. */
  readonly isClustersetProxied: boolean;
}

interface PlaceEndpoints {
  readonly place: Place;
  readonly set: ResourceSet;
  users: number;
}

interface OwnResources {
  readonly proxy: ProxyIdentity;
  readonly set: ResourceSet;
  users: number;
}

/** Places without proxies that are kept current all the same. */
const unusedMax = 4;

/** Fills a new place with endpoints, and keeps it current until it is dropped. */
export type FillPlace = (place: Place, set: ResourceSet) => void;

/** Fills the resources of one proxy alone, such as its certificate. */
export type FillProxy = (proxy: ProxyIdentity, set: ResourceSet) => void;

export class ViewIndex {
  readonly clusterset = new ResourceSet();
  readonly clustersetListeners = new ResourceSet();
  readonly peers = new ResourceSet();
  readonly external = new ResourceSet();
  readonly ingress = new ResourceSet();
  readonly gateway = new ResourceSet();
  /** Resources of every sidecar, such as the listener for redirected connections. */
  readonly sidecar = new ResourceSet();
  readonly #places = new Map<string, PlaceEndpoints>();
  /** Resources of connected sidecars, by the name in their certificate. */
  readonly #proxies = new Map<string, OwnResources>();
  #fill: FillPlace = () => {};
  readonly #fillProxy: FillProxy[] = [];

  onPlace(fill: FillPlace): void {
    this.#fill = fill;
    for (const { place, set } of this.#places.values()) fill(place, set);
  }

  onProxy(fill: FillProxy): void {
    this.#fillProxy.push(fill);
    for (const { proxy, set } of this.#proxies.values()) fill(proxy, set);
  }

  /** Connected sidecars, and the resources that each has alone. */
  proxies(): Iterable<{ readonly proxy: ProxyIdentity; readonly set: ResourceSet }> {
    return this.#proxies.values();
  }

  places(): Iterable<{ readonly place: Place; readonly set: ResourceSet }> {
    return this.#places.values();
  }

  /** `release` must be called when the proxy is gone. */
  open(request: ViewRequest): { readonly view: View; readonly release: () => void } {
    const { role } = request.proxy;
    if (role === 'ingress' || role === 'gateway') {
      return { view: new View({ wildcard: [this[role]], byName: [] }), release: () => {} };
    }
    const { set, release: releasePlace } = this.#openPlace(request.place);
    const clusterset = [this.clusterset, set];
    // Without any set that holds secrets.
    if (role === 'grpc') return { view: new View({ wildcard: [], byName: clusterset }), release: releasePlace };
    const { set: alone, release: releaseProxy } = this.#openProxy(request.proxy);
    const own = [this.sidecar, this.external, this.peers, alone];
    const sets = request.isClustersetProxied
      ? { wildcard: [...own, ...clusterset, this.clustersetListeners], byName: [] }
      : { wildcard: own, byName: clusterset };
    const release = () => {
      releasePlace();
      releaseProxy();
    };
    return { view: new View(sets), release };
  }

  #openProxy(proxy: ProxyIdentity): { readonly set: ResourceSet; readonly release: () => void } {
    const id = identityUri(proxy);
    let known = this.#proxies.get(id);
    if (known === undefined) {
      known = { proxy, set: new ResourceSet(), users: 0 };
      this.#proxies.set(id, known);
      for (const fill of this.#fillProxy) fill(proxy, known.set);
    }
    const opened = known;
    opened.users += 1;
    return {
      set: opened.set,
      release: () => {
        opened.users -= 1;
        if (opened.users === 0) this.#proxies.delete(id);
      },
    };
  }

  #openPlace(place: Place): { readonly set: ResourceSet; readonly release: () => void } {
    const key = [place.cluster, place.region ?? '', place.zone ?? ''].join('\n');
    let known = this.#places.get(key);
    if (known === undefined) {
      known = { place, set: new ResourceSet(), users: 0 };
      this.#places.set(key, known);
      this.#fill(place, known.set);
    }
    const opened = known;
    opened.users += 1;
    return {
      set: opened.set,
      release: () => {
        opened.users -= 1;
        if (opened.users === 0) this.#forgetSome();
      },
    };
  }

  // A proxy that restarts finds its place as it left it, and what was proven there.
  #forgetSome(): void {
    const unused = [...this.#places].filter(([, { users }]) => users === 0);
    for (const [key] of unused.slice(0, Math.max(0, unused.length - unusedMax))) this.#places.delete(key);
  }
}
