// Which imports must be worked out again, and what the choice makes of each, from the facts of the home. Pure; the home is
// watched in attach.ts and the rules are applied in nft/ and userspace/.

import { formatAddress } from '../base/net/ip.ts';
import { ServedAddresses } from '../catalog/claims/served-addresses.ts';
import { FactIndex } from '../catalog/facts/fact-index.ts';
import { type NamedSlice, virtualAddressesIn } from '../catalog/facts/facts.ts';
import type { Target } from '../catalog/facts/targets.ts';
import type { Answering } from '../clusterset/rules/choice/answering.ts';
import { readRouting } from '../clusterset/rules/routing/routing.ts';
import { type Choice, choose, type View } from './choose.ts';
import type { NearSideView } from './near-side.ts';
import { OwnServices } from './own-services.ts';

const noChoice: Choice = { ports: [], problems: [] };
/** Times at which facts were seen are shown by nothing here. */
const noClock = { monotonicMs: () => 0 };

const samplesMax = 8;

export class ProxyState {
  readonly facts: FactIndex;
  /** Whose address is whose. */
  readonly addresses = new ServedAddresses((key) => this.#mark(key));
  /** Services of this cluster; none are here unless they are carried. */
  readonly own: OwnServices;
  readonly #dirty = new Set<string>();
  /** Imports whose addresses may be others than `addresses` knows. */
  readonly #touched = new Set<string>();
  #view: View;
  #nearSide: NearSideView | undefined;
  #answering: Answering<Target> | undefined;
  /** Imports with endpoints in another network, by its cluster. */
  readonly #remote = new Map<string, Set<string>>();
  /** Services whose connections are counted by cluster: those that are shifted. */
  readonly #counted = new Set<string>();
  /** A few services with endpoints in each cluster. */
  readonly #samples = new Map<string, string[]>();
  #onDirty: () => void = () => {};

  /** The facts hold what traffic needs. */
  constructor(view: View, facts = new FactIndex({ clock: noClock, holdsTraffic: true })) {
    this.#view = view;
    this.facts = facts;
    this.own = new OwnServices({ facts, onChange: (key) => this.#mark(key), onLent: (key) => this.#touch(key) });
    for (const key of facts.keys('imports')) this.#touch(key);
    facts.onTouch((ownerKey) => {
      if (ownerKey[0] === 'i') this.#touch(ownerKey.slice(2));
    });
  }

  /** Called when there is something to take. */
  onDirty(handler: () => void): void {
    this.#onDirty = handler;
  }

  /** Where this node is and what it may use: every service is worked out again. */
  setView(view: View): void {
    this.#view = view;
    for (const key of this.facts.keys('imports')) this.#mark(key);
    for (const key of this.own.stateKeys()) this.#mark(key);
  }

  /** The way to other networks: only services with endpoints there are worked out again. */
  setNearSide(nearSide: NearSideView): void {
    const before = this.#nearSide;
    this.#nearSide = nearSide;
    const isMoved = JSON.stringify(before?.addresses) !== JSON.stringify(nearSide.addresses);
    for (const [cluster, keys] of this.#remote) {
      const isSame = before?.problems.has(cluster) === nearSide.problems.has(cluster);
      if (isMoved || !isSame || before?.problems.get(cluster) !== nearSide.problems.get(cluster))
        for (const key of keys) this.#mark(key);
    }
  }

  /** What this node sees of endpoints. When it has changed, `touch` is called for the services concerned. */
  setAnswering(answering: Answering<Target>): void {
    this.#answering = answering;
  }

  touch(key: string): void {
    this.#mark(key);
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
    this.#settle();
    const keys = [...this.#dirty];
    this.#dirty.clear();
    return keys;
  }

  has(key: string): boolean {
    return this.facts.ownerOf(`i/${key}`).isPresent;
  }

  choiceOf(key: string): Choice {
    this.#settle();
    const ownService = OwnServices.keyIn(key);
    if (ownService !== undefined) return this.own.choiceOf(ownService, this.#view);
    const owner = this.facts.ownerOf(`i/${key}`);
    const slices = owner.isPresent ? this.facts.slicesOf(`i/${key}`, owner) : [];
    this.#noteRemote(key, slices);
    if (readRouting(owner.routing).shift === undefined) this.#counted.delete(key);
    else this.#counted.add(key);
    if (!owner.isPresent) return noChoice;
    const addressProblem = (ip: string) => this.addresses.problemOf(ip, key);
    const isLent = (ip: string) => this.own.lends(key, ip);
    const seen = { nearSide: this.#nearSide, answering: this.#answering };
    const choice = choose({ owner, slices, addressProblem, isLent, ...seen }, this.#view);
    this.#noteSample(key, choice);
    return choice;
  }

  /** Clusters with endpoints that connections go to directly, each with a few of its services. Some may have gone meanwhile. */
  samples(): ReadonlyMap<string, readonly string[]> {
    return this.#samples;
  }

  forgetSample(cluster: string, key: string): void {
    const left = (this.#samples.get(cluster) ?? []).filter((each) => each !== key);
    if (left.length === 0) this.#samples.delete(cluster);
    else this.#samples.set(cluster, left);
  }

  #noteSample(key: string, { ports }: Choice): void {
    let last = '';
    for (const { protocol, backends } of ports)
      for (const { cluster, via } of protocol === 'TCP' ? backends : []) {
        if (cluster === last || via !== undefined) continue;
        last = cluster;
        const known = this.#samples.get(cluster) ?? [];
        if (known.length < samplesMax && !known.includes(key)) this.#samples.set(cluster, [...known, key]);
      }
  }

  counted(): ReadonlySet<string> {
    return this.#counted;
  }

  get size(): { readonly services: number; readonly slices: number } {
    const { imports: services, slices } = this.facts.size;
    return { services, slices };
  }

  #noteRemote(key: string, slices: readonly NamedSlice[]): void {
    const { clusters } = this.#view.networks;
    if (clusters.size === 0 && this.#remote.size === 0) return;
    const present = new Set(slices.map(({ cluster }) => cluster).filter((cluster) => clusters.has(cluster)));
    for (const [cluster, keys] of this.#remote) {
      if (present.has(cluster) || !keys.delete(key)) continue;
      if (keys.size === 0) this.#remote.delete(cluster);
    }
    for (const cluster of present) {
      const keys = this.#remote.get(cluster) ?? new Set();
      this.#remote.set(cluster, keys.add(key));
    }
  }

  #touch(key: string): void {
    this.#touched.add(key);
    this.#mark(key);
  }

  /** A touch comes before its change: addresses are read when somebody asks. */
  #settle(): void {
    for (const key of this.#touched) {
      const owner = this.facts.ownerOf(`i/${key}`);
      const isHeadless = owner.kind === 'Headless';
      const ips = isHeadless ? virtualAddressesIn(this.facts.slicesOf(`i/${key}`, owner)) : owner.ips;
      this.addresses.use(
        key,
        ips.map((ip) => formatAddress(ip)),
      );
    }
    this.#touched.clear();
  }

  #mark(key: string): void {
    this.#dirty.add(key);
    this.#onDirty();
  }
}
