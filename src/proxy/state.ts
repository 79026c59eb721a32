// All that the proxy keeps of the home: facts of imports and slices by service, and which services must be worked out
// again. Pure; the home is watched in attach.ts and the rules are applied in apply.ts.

import { ServedAddresses } from '../catalog/claims/served-addresses.ts';
import type { ServiceImport } from '../clusterset/kinds/service-import.ts';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import { keyOf } from '../kube/objects/object.ts';
import { type Choice, choose, type View } from './choose.ts';
import { factsOfImport, factsOfSlice, type ServiceFacts, type SliceFacts } from './facts.ts';

const noChoice: Choice = { ports: [], problems: [] };

export class ProxyState {
  readonly #services = new Map<string, ServiceFacts>();
  /** By service, then by slice. */
  readonly #slices = new Map<string, Map<string, SliceFacts>>();
  readonly #serviceOfSlice = new Map<string, string>();
  /** Whose address is whose. */
  readonly addresses = new ServedAddresses((key) => this.#mark(key));
  readonly #dirty = new Set<string>();
  #view: View;
  #onDirty: () => void = () => {};

  constructor(view: View) {
    this.#view = view;
  }

  /** Called when there is something to take. */
  onDirty(handler: () => void): void {
    this.#onDirty = handler;
  }

  upsertImport(object: ServiceImport): void {
    const facts = factsOfImport(object);
    this.#services.set(facts.key, facts);
    this.addresses.use(
      facts.key,
      facts.ips.map(({ text }) => text),
    );
    this.#mark(facts.key);
  }

  removeImport(key: string): void {
    this.addresses.use(key, []);
    this.#services.delete(key);
    this.#mark(key);
  }

  upsertSlice(slice: EndpointSlice): void {
    const key = keyOf(slice);
    const facts = factsOfSlice(slice);
    if (facts?.service !== this.#serviceOfSlice.get(key)) this.removeSlice(key);
    if (facts === undefined) return;
    this.#serviceOfSlice.set(key, facts.service);
    this.#slices.set(facts.service, (this.#slices.get(facts.service) ?? new Map()).set(key, facts));
    this.#mark(facts.service);
  }

  removeSlice(key: string): void {
    const service = this.#serviceOfSlice.get(key);
    if (service === undefined) return;
    this.#serviceOfSlice.delete(key);
    const slices = this.#slices.get(service);
    slices?.delete(key);
    if (slices?.size === 0) this.#slices.delete(service);
    this.#mark(service);
  }

  importKeys(): IterableIterator<string> {
    return this.#services.keys();
  }

  sliceKeys(): IterableIterator<string> {
    return this.#serviceOfSlice.keys();
  }

  /** Where this node is and what it may use: every service is worked out again. */
  setView(view: View): void {
    this.#view = view;
    for (const key of this.#services.keys()) this.#mark(key);
  }

  get view(): View {
    return this.#view;
  }

  /** Whether an endpoint of this cluster may itself be a client here; all may while our own cluster is not known. */
  mayBeClient(cluster: string): boolean {
    const own = this.#view.self.cluster;
    return own === '' || own === cluster;
  }

  /** Services that changed since the last call. */
  takeDirty(): string[] {
    const keys = [...this.#dirty];
    this.#dirty.clear();
    return keys;
  }

  has(key: string): boolean {
    return this.#services.has(key);
  }

  choiceOf(key: string): Choice {
    const service = this.#services.get(key);
    if (service === undefined) return noChoice;
    const problems: string[] = [];
    const ips = service.ips.filter(({ text }) => {
      const problem = this.addresses.problemOf(text, key);
      if (problem !== undefined) problems.push(problem);
      return problem === undefined;
    });
    const served = { ...service, ips, problems: [...service.problems, ...problems] };
    return choose(served, this.#slices.get(key)?.values() ?? [], this.#view);
  }

  get size(): { readonly services: number; readonly slices: number } {
    return { services: this.#services.size, slices: this.#serviceOfSlice.size };
  }

  #mark(key: string): void {
    this.#dirty.add(key);
    this.#onDirty();
  }
}
