// The Services of this cluster, where this proxy carries their cluster IPs: which rules each has, and which addresses derived
// Services lend to imports. No I/O.

import { formatAddress } from '../base/net/ip.ts';
import { ServedAddresses } from '../catalog/claims/served-addresses.ts';
import type { FactIndex } from '../catalog/facts/fact-index.ts';
import { addressesOf } from '../catalog/facts/facts.ts';
import { derivedFor } from '../clusterset/rules/derived-service.ts';
import { serviceProxyNameLabel } from '../kube/objects/endpoint-slice.ts';
import { managerName } from '../kube/objects/ours.ts';
import type { Service } from '../kube/objects/service.ts';
import { type Choice, choose, type View } from './choose.ts';

const noChoice: Choice = { ports: [], problems: [] };

/** Two letters more than any key of an import begins with: no namespace holds a colon. */
const prefix = 'service:';

export interface OwnServicesOptions {
  readonly facts: FactIndex;
  /** The rules of a Service must be worked out again. */
  readonly onChange: (stateKey: string) => void;
  /** The addresses that a derived Service lends to an import have changed. */
  readonly onLent: (importKey: string) => void;
}

export class OwnServices {
  readonly #options: OwnServicesOptions;
  readonly #addresses = new ServedAddresses((key) => this.#options.onChange(`${prefix}${key}`));
  /** By key of the derived Service: the import it is of, and its cluster IPs. */
  readonly #derived = new Map<string, { readonly of: string; readonly ips: readonly string[] }>();
  /** Keys of derived Services by import. */
  readonly #lenders = new Map<string, string>();

  constructor(options: OwnServicesOptions) {
    this.#options = options;
    // Cluster IPs need no claims: the home gives each to one Service.
    this.#addresses.setListed();
    options.facts.onTouch((ownerKey) => {
      if (ownerKey[0] === 's') options.onChange(`${prefix}${ownerKey.slice(2)}`);
    });
  }

  /** `namespace/name` of a Service from its key in the state; undefined for one of an import. */
  static keyIn(stateKey: string): string | undefined {
    return stateKey.startsWith(prefix) ? stateKey.slice(prefix.length) : undefined;
  }

  upsert(service: Service): void {
    const { labels, namespace = '', name } = service.metadata;
    const key = `${namespace}/${name}`;
    const proxyName = labels?.[serviceProxyNameLabel];
    // Another proxy has been named for it.
    if (proxyName !== undefined && proxyName !== managerName) return this.remove(key);
    const { clusterIPs, clusterIP } = service.spec ?? {};
    const ips = addressesOf(clusterIPs ?? (clusterIP ? [clusterIP] : [])).map((ip) => formatAddress(ip));
    const importKey = derivedFor(service);
    this.#lend(key, importKey, ips);
    this.#options.facts.upsertService(service);
    this.#addresses.use(key, importKey === undefined ? ips : []);
  }

  remove(key: string): void {
    this.#lend(key, undefined, []);
    this.#options.facts.removeService(key);
    this.#addresses.use(key, []);
  }

  keys(): IterableIterator<string> {
    return this.#options.facts.keys('services');
  }

  /** As they are called in the state. */
  *stateKeys(): Generator<string> {
    for (const key of this.keys()) yield `${prefix}${key}`;
  }

  /** Whether the address is that of the Service derived for this import. */
  lends(importKey: string, ip: string): boolean {
    return this.#derived.get(this.#lenders.get(importKey) ?? '')?.ips.includes(ip) === true;
  }

  choiceOf(key: string, view: View): Choice {
    const owner = this.#options.facts.ownerOf(`s/${key}`);
    // Its import has the rules, by the choice of the clusterset.
    if (!owner.isPresent || owner.kind !== 'ClusterIP' || this.#derived.has(key)) return noChoice;
    // Slices of this cluster name none; it has a name in the rules even while its id is not known.
    const cluster = view.self.cluster || '-';
    const slices = this.#options.facts.slicesOf(`s/${key}`, owner).map((slice) => ({ ...slice, cluster }));
    const { servesOwn = () => false } = view;
    const addressProblem = (ip: string) =>
      servesOwn(ip)
        ? this.#addresses.problemOf(ip, key)
        : `${ip} is outside the ranges of this cluster's Services: give all of them by --service-range`;
    // How far traffic goes between clusters says nothing of Services inside one.
    const inside: View = {
      ...view,
      serves: servesOwn,
      self: { ...view.self, cluster },
      locality: { ...view.locality, preference: 'Spread' },
    };
    return choose({ owner, slices, addressProblem }, inside);
  }

  #lend(key: string, of: string | undefined, ips: readonly string[]): void {
    const before = this.#derived.get(key);
    if (before?.of === of && before?.ips.join() === ips.join()) return;
    if (before === undefined && of === undefined) return;
    if (before !== undefined && this.#lenders.get(before.of) === key) this.#lenders.delete(before.of);
    if (of === undefined) this.#derived.delete(key);
    else {
      this.#derived.set(key, { of, ips });
      this.#lenders.set(of, key);
    }
    for (const changed of new Set([before?.of, of])) if (changed !== undefined) this.#options.onLent(changed);
  }
}
