// The names of external services: each is a single name whose neighbours are not ours, and answers with its
// virtual IPs. They lie beside the names of peers; a name that an external service holds is no peer's.

import { recordType } from '../../base/dns/codes.ts';
import { encodeName, reverseName, tryEncodeName } from '../../base/dns/name.ts';
import { type MeshExternalService, originOf, ownName } from '../../external/kinds/mesh-external-service.ts';
import { addressesOf } from '../facts/facts.ts';
import { order, plainRecord, zoneMark } from '../names/answers.ts';
import type { NameTable } from '../names/name-table.ts';
import type { OutsideGate } from '../names/outside-gate.ts';
import { addAddresses, OwnerNames } from '../names/owner-names.ts';
import type { PeerTable } from './peer-table.ts';

export interface ExternalTableOptions {
  readonly table: NameTable;
  readonly peers: PeerTable;
  readonly gate: OutsideGate;
}

/** The owner of a name, for explanations. */
export interface ExternalNameReport {
  /** `namespace/name`, as people gave it. */
  readonly holders: readonly string[];
  readonly ips: readonly string[];
}

interface Held {
  readonly id: string;
  /** Addresses by hostname. */
  readonly ips: ReadonlyMap<string, readonly string[]>;
}

export class ExternalTable {
  readonly #options: ExternalTableOptions;
  /** By the key of the object. */
  readonly #services = new Map<string, Held>();
  /** By hostname: keys of those that have it. */
  readonly #holders = new Map<string, Set<string>>();

  constructor(options: ExternalTableOptions) {
    this.#options = options;
  }

  upsert(service: MeshExternalService): void {
    const { namespace = '', name } = service.metadata;
    const ips = new Map<string, string[]>();
    for (const vip of service.status?.vips ?? []) {
      const hostname = vip.hostname.toLowerCase();
      if (tryEncodeName(hostname) !== undefined) ips.set(hostname, [...(ips.get(hostname) ?? []), vip.ip]);
    }
    const where = originOf(service) === 'broker' ? 'broker' : namespace;
    this.#change(`${namespace}/${name}`, { id: `${where}/${ownName(service)}`, ips });
  }

  remove(key: string): void {
    this.#change(key, undefined);
  }

  keys(): IterableIterator<string> {
    return this.#services.keys();
  }

  setSynced(): void {
    this.#options.gate.setSynced('external');
  }

  passOthers(): void {
    this.#options.gate.pass('external');
  }

  nothingToRead(): void {
    this.#options.gate.setSynced('external');
  }

  setStale(isStale: boolean): void {
    this.#options.gate.setStale('external', isStale);
  }

  holds(name: string): boolean {
    return this.#holders.has(name);
  }

  /** Undefined for a name that no external service has. */
  report(name: string): ExternalNameReport | undefined {
    const keys = this.#holders.get(name);
    if (keys === undefined) return undefined;
    return { holders: Array.from(keys, (key) => this.#services.get(key)!.id).sort(), ips: this.#ipsOf(name) };
  }

  #change(key: string, after: Held | undefined): void {
    const before = this.#services.get(key);
    const names = new Set([...(before?.ips.keys() ?? []), ...(after?.ips.keys() ?? [])]);
    const old = new Map(Array.from(names, (name) => [name, this.#ipsOf(name)]));
    if (after === undefined) this.#services.delete(key);
    else this.#services.set(key, after);
    let hasChanged = false;
    for (const name of names) {
      this.#settle(name, key, after?.ips.has(name) === true);
      if (this.#write(name, old.get(name)!)) hasChanged = true;
    }
    if (hasChanged) this.#options.table.bumpSerial();
  }

  /** A name comes to external services, or goes back to peers, in one step. */
  #settle(name: string, key: string, isHolder: boolean): void {
    const keys = new Set(this.#holders.get(name));
    if (isHolder) keys.add(key);
    else keys.delete(key);
    const isTaken = keys.size > 0;
    const change = () => {
      if (isTaken) this.#holders.set(name, keys);
      else {
        this.#holders.delete(name);
        this.#options.table.remove(name);
      }
    };
    if (isTaken === this.#holders.has(name)) change();
    else this.#options.peers.whileOthersTake(name, change);
  }

  #ipsOf(name: string): string[] {
    const ips = Array.from(this.#holders.get(name) ?? [], (key) => this.#services.get(key)?.ips.get(name) ?? []);
    return [...new Set(ips.flat())].sort();
  }

  /** True if anything was written. */
  #write(name: string, before: readonly string[]): boolean {
    const after = this.#ipsOf(name);
    const { table, peers } = this.#options;
    for (const ip of new Set([...before, ...after])) {
      if (before.includes(ip) === after.includes(ip)) continue;
      const [bytes] = addressesOf([ip]);
      const [remove, add] = after.includes(ip) ? [[], [name]] : [[name], []];
      if (bytes !== undefined) table.changePointers(reverseName(bytes), { remove, add });
    }
    if (!this.#holders.has(name)) return before.length > 0;
    const names = new OwnerNames(name);
    names.exist(name);
    const addresses = addressesOf(after).map((address) => ({ address, cluster: 0 }));
    addAddresses(names, name, addresses, order.fixed);
    const records = [plainRecord(encodeName(peers.nameserver))];
    names.add(name, { type: recordType.NS, order: order.fixed, records });
    return table.putIfOther(name, peers.zone.id | zoneMark.singleName, names.sets.get(name) ?? []);
  }
}
