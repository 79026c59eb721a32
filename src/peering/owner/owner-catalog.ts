// The services that each peer may see, updated change by change: one Service that changes touches the ids it stands for and
// nothing else. A service shared with many peers is one object, encoded once for each draft of the protocol.

import { isSameJson } from '../../base/json.ts';
import type { Service } from '../../kube/objects/service.ts';
import {
  exportsService,
  type MeshDefaults,
  missingPort,
  type PeerExport,
  sharedServiceOf,
} from '../kinds/peer-export.ts';
import { type SharedService, validateSharedService } from '../kinds/shared-service.ts';
import type { Offer } from '../session/messages.ts';
import type { OwnerView } from '../session/owner-session.ts';
import type { Draft } from '../transport/wire.ts';

/** The settings of one export for one service. */
export interface Share {
  readonly exportKey: string;
  readonly createdAt: string;
  readonly peers: readonly string[];
  readonly service: SharedService;
  /** Empty when it may be offered. */
  readonly wrong: string;
}

export interface OwnerCatalogOptions {
  readonly mesh: MeshDefaults;
  /** Told of each id whose offer to that peer is another one now. */
  readonly onChanged: (peer: string, id: string) => void;
  /** Told when what is wrong with an export, or how much it selects, may have changed. */
  readonly onExportChanged?: (exportKey: string) => void;
}

export interface ViewOptions {
  readonly epoch: string;
  /** How far into the home's history the catalog has come: deletions count too, whichever watch saw them. */
  readonly revision: () => number;
  readonly hasSynced: () => boolean;
}

/** A service whose description and labels are larger than this is no service. */
const serviceCharactersMax = 500_000;
const anyName = { allowedDomains: ['*'], ownZones: [] };

export class OwnerCatalog {
  readonly #options: OwnerCatalogOptions;
  /** By namespace, then by name. */
  readonly #services = new Map<string, Map<string, Service>>();
  /** Services of the clusterset; one of this cluster of the same name is the one that is described. */
  readonly #imports = new Map<string, Map<string, Service>>();
  readonly #exports = new Map<string, Map<string, PeerExport>>();
  /** By export, then by name of the service. */
  readonly #shares = new Map<string, Map<string, Share>>();
  /** By peer, then by id: who offers it, the oldest export first. */
  readonly #claims = new Map<string, Map<string, Share[]>>();
  readonly #exportsTo = new Map<string, Set<string>>();
  readonly #offers = new Map<Draft, WeakMap<SharedService, Offer>>();

  constructor(options: OwnerCatalogOptions) {
    this.#options = options;
  }

  setService(namespace: string, name: string, service: Service | undefined): void {
    put(this.#services, namespace, name, service);
    this.#serviceChanged(namespace, name);
  }

  setImport(namespace: string, name: string, imported: Service | undefined): void {
    put(this.#imports, namespace, name, imported);
    this.#serviceChanged(namespace, name);
  }

  #serviceChanged(namespace: string, name: string): void {
    const service = this.#serviceAt(namespace, name);
    for (const [exportName, peerExport] of this.#exports.get(namespace) ?? [])
      this.#update(`${namespace}/${exportName}`, peerExport, name, service);
  }

  #serviceAt(namespace: string, name: string): Service | undefined {
    return this.#services.get(namespace)?.get(name) ?? this.#imports.get(namespace)?.get(name);
  }

  setExport(namespace: string, name: string, peerExport: PeerExport | undefined): void {
    const key = `${namespace}/${name}`;
    const previous = this.#exports.get(namespace)?.get(name);
    const before = previous?.metadata;
    put(this.#exports, namespace, name, peerExport);
    this.#indexPeers(key, previous?.spec.peers ?? [], peerExport?.spec.peers ?? []);
    // Its status is our own writing.
    const { uid, generation } = peerExport?.metadata ?? {};
    if (generation !== undefined && before?.uid === uid && before?.generation === generation) return;
    const names = new Set(this.#shares.get(key)?.keys());
    for (const known of [this.#services, this.#imports])
      for (const service of known.get(namespace)?.keys() ?? []) names.add(service);
    for (const service of names) this.#update(key, peerExport, service, this.#serviceAt(namespace, service));
    this.#options.onExportChanged?.(key);
  }

  /** Keys of the exports that name this peer. */
  exportsTo(peer: string): Iterable<string> {
    return this.#exportsTo.get(peer) ?? [];
  }

  /** Services shared by one export, valid or not. */
  sharesOf(exportKey: string): Iterable<Share> {
    return this.#shares.get(exportKey)?.values() ?? [];
  }

  /** The share that this peer is offered under this id. */
  offered(peer: string, id: string): Share | undefined {
    return this.#claims.get(peer)?.get(id)?.[0];
  }

  count(peer: string): number {
    return this.#claims.get(peer)?.size ?? 0;
  }

  *offeredTo(peer: string): Generator<SharedService> {
    for (const [share] of this.#claims.get(peer)?.values() ?? []) if (share !== undefined) yield share.service;
  }

  view(peer: string, draft: Draft, about: ViewOptions): OwnerView {
    const catalog = this;
    return {
      epoch: about.epoch,
      get hasSynced() {
        return about.hasSynced();
      },
      get revision() {
        return about.revision();
      },
      get ids() {
        return catalog.#claims.get(peer)?.keys() ?? [];
      },
      offer: (id) => {
        const share = catalog.offered(peer, id);
        return share && catalog.#offer(draft, share.service);
      },
    };
  }

  #offer(draft: Draft, service: SharedService): Offer {
    let offers = this.#offers.get(draft);
    if (offers === undefined) this.#offers.set(draft, (offers = new WeakMap()));
    let offer = offers.get(service);
    if (offer === undefined) offers.set(service, (offer = draft.encodeOffer(service)));
    return offer;
  }

  #update(exportKey: string, peerExport: PeerExport | undefined, name: string, service: Service | undefined): void {
    const before = this.#shares.get(exportKey)?.get(name);
    const isShared = peerExport !== undefined && service !== undefined && exportsService(peerExport, service);
    const after = isShared ? this.#shareOf(exportKey, peerExport, service) : undefined;
    if (before === after || (before !== undefined && after !== undefined && isSameShare(before, after))) return;
    put(this.#shares, exportKey, name, after);
    const touched = new Map<string, { peer: string; id: string; previous: Share | undefined }>();
    for (const share of [before, after]) {
      if (share === undefined || share.wrong !== '') continue;
      const { id } = share.service;
      for (const peer of share.peers) touched.set(`${peer} ${id}`, { peer, id, previous: this.offered(peer, id) });
    }
    if (before !== undefined) this.#withdraw(before);
    if (after !== undefined) this.#claim(after);
    for (const { peer, id, previous } of touched.values())
      if (this.offered(peer, id)?.service !== previous?.service) this.#options.onChanged(peer, id);
    this.#options.onExportChanged?.(exportKey);
  }

  #shareOf(exportKey: string, peerExport: PeerExport, service: Service): Share {
    const shared = sharedServiceOf(peerExport, service, this.#options.mesh);
    const { creationTimestamp: createdAt = '' } = peerExport.metadata;
    const wrong = missingPort(peerExport, service) || whatIsWrongWith(shared);
    return { exportKey, createdAt, peers: peerExport.spec.peers, service: shared, wrong };
  }

  #indexPeers(key: string, before: readonly string[], after: readonly string[]): void {
    for (const peer of before) this.#exportsTo.get(peer)?.delete(key);
    for (const peer of after) this.#exportsTo.set(peer, (this.#exportsTo.get(peer) ?? new Set()).add(key));
  }

  #claim(share: Share): void {
    if (share.wrong !== '') return;
    for (const peer of share.peers) {
      const ids = this.#claims.get(peer) ?? new Map<string, Share[]>();
      this.#claims.set(peer, ids);
      const claims = [...(ids.get(share.service.id) ?? []), share];
      ids.set(share.service.id, claims.sort(byAge));
    }
  }

  #withdraw(share: Share): void {
    for (const peer of share.peers) {
      const ids = this.#claims.get(peer);
      const left = ids?.get(share.service.id)?.filter((claim) => claim !== share);
      if (left === undefined) continue;
      if (left.length === 0) ids?.delete(share.service.id);
      else ids?.set(share.service.id, left);
    }
  }
}

function put<V>(maps: Map<string, Map<string, V>>, outer: string, inner: string, value: V | undefined): void {
  const map = maps.get(outer) ?? new Map<string, V>();
  if (value === undefined) map.delete(inner);
  else map.set(inner, value);
  if (map.size === 0) maps.delete(outer);
  else maps.set(outer, map);
}

function isSameShare(one: Share, other: Share): boolean {
  return isSameJson(one, other);
}

// If two exports claim one id, the older keeps it, so that a newcomer cannot take over a service that peers already
// use.
function byAge(one: Share, other: Share): number {
  if (one.createdAt !== other.createdAt) return one.createdAt < other.createdAt ? -1 : 1;
  return one.exportKey < other.exportKey ? -1 : 1;
}

function whatIsWrongWith(service: SharedService): string {
  const errors = validateSharedService(service, anyName);
  if (errors.length > 0) return errors.map(({ field, message }) => `${field}: ${message}`).join('; ');
  const characters = JSON.stringify(service).length;
  return characters > serviceCharactersMax ? `${characters} characters are more than ${serviceCharactersMax}` : '';
}
