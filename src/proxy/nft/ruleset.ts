// The wanted content of the table, service by service, and the difference that one round of changes makes. Pure: it is the
// plan, and never reads the kernel.

import type { PortChoice } from '../port-choice.ts';
import { chainsOf, type Element, elementsOf, type PortPlan, planPort, slotsOf } from './port-plan.ts';

/** One transaction: first the deletions, then the additions. */
export interface Difference {
  readonly newChains: readonly string[];
  readonly oldChains: readonly string[];
  readonly deleted: readonly Element[];
  readonly added: readonly Element[];
  /** Backends that are gone: connection-tracking entries would keep clients with them. */
  readonly gone: readonly GoneBackend[];
}

export interface GoneBackend {
  readonly ip: string;
  readonly version: 4 | 6;
  readonly protocol: 'tcp' | 'udp';
  readonly backend: string;
}

export interface RulesetOptions {
  /** Endpoints that may themselves be clients here: those of this cluster. All of them if it is not known. */
  readonly isHairpin?: (cluster: string) => boolean;
}

interface ServicePlan {
  readonly ports: ReadonlyMap<string, PortPlan>;
  /** `VERSION ADDRESS` of endpoints that may be clients too. */
  readonly hairpins: ReadonlySet<string>;
}

/** Always there: to add a chain costs several times what an element costs, and most services have few endpoints. */
const permanentChains: ReadonlySet<string> = new Set(
  ['tcp4', 'udp4', 'tcp6', 'udp6'].flatMap((kind) => Array.from({ length: 16 }, (_, i) => `pick-${kind}-${i + 1}`)),
);

const noService: ServicePlan = { ports: new Map(), hairpins: new Set() };

export class Ruleset {
  readonly #options: RulesetOptions;
  readonly #services = new Map<string, ServicePlan>();
  readonly #chainUses = new Map<string, number>();
  readonly #hairpinUses = new Map<string, number>();
  #redirects: readonly Element[] = [];

  constructor(options: RulesetOptions = {}) {
    this.#options = options;
  }

  /** Takes the new choices of these services. Each is named once. */
  change(services: Iterable<readonly [key: string, ports: readonly PortChoice[]]>): Difference {
    const round = new Round(this.#chainUses, this.#hairpinUses);
    for (const [key, choices] of services) {
      const before = this.#services.get(key) ?? noService;
      const after = this.#plan(choices, before);
      round.service(before, after);
      if (after.ports.size === 0) this.#services.delete(key);
      else this.#services.set(key, after);
    }
    return round.difference();
  }

  get redirects(): readonly Element[] {
    return this.#redirects;
  }

  setRedirects(redirects: readonly Element[]): Difference {
    const round = new Round(this.#chainUses, this.#hairpinUses);
    round.elements(this.#redirects, redirects);
    this.#redirects = redirects;
    return round.difference();
  }

  *chains(): Generator<string> {
    yield* permanentChains;
    for (const chain of this.#chainUses.keys()) if (!permanentChains.has(chain)) yield chain;
  }

  *elements(): Generator<Element> {
    for (const { ports } of this.#services.values()) for (const plan of ports.values()) yield* elementsOf(plan);
    for (const hairpin of this.#hairpinUses.keys()) yield hairpinElement(hairpin);
    yield* this.#redirects;
  }

  get size(): { readonly services: number; readonly ports: number; readonly backends: number } {
    let [ports, backends] = [0, 0];
    for (const service of this.#services.values()) {
      ports += service.ports.size;
      for (const { lots } of service.ports.values()) backends += slotsOf(lots).length;
    }
    return { services: this.#services.size, ports, backends };
  }

  #plan(choices: readonly PortChoice[], before: ServicePlan): ServicePlan {
    const ports = new Map<string, PortPlan>();
    const hairpins = new Set<string>();
    for (const choice of choices) {
      const key = `${choice.ip} ${choice.protocol} ${choice.port}`;
      const plan = planPort(choice, before.ports.get(key));
      ports.set(key, plan);
      for (const { address, cluster } of choice.backends)
        if (this.#options.isHairpin?.(cluster) ?? true) hairpins.add(`${plan.version} ${address}`);
    }
    return { ports, hairpins };
  }
}

/** The changes of one transaction. */
class Round {
  readonly #chainUses: Map<string, number>;
  readonly #hairpinUses: Map<string, number>;
  readonly #chainsBefore = new Map<string, boolean>();
  readonly #hairpinsBefore = new Map<string, boolean>();
  readonly #deleted: Element[] = [];
  readonly #added: Element[] = [];
  readonly #gone: GoneBackend[] = [];

  constructor(chainUses: Map<string, number>, hairpinUses: Map<string, number>) {
    this.#chainUses = chainUses;
    this.#hairpinUses = hairpinUses;
  }

  service(before: ServicePlan, after: ServicePlan): void {
    for (const [key, plan] of after.ports) this.#port(before.ports.get(key), plan);
    for (const [key, plan] of before.ports) if (!after.ports.has(key)) this.#port(plan, undefined);
    for (const hairpin of after.hairpins)
      if (!before.hairpins.has(hairpin)) count(this.#hairpinUses, this.#hairpinsBefore, hairpin, 1);
    for (const hairpin of before.hairpins)
      if (!after.hairpins.has(hairpin)) count(this.#hairpinUses, this.#hairpinsBefore, hairpin, -1);
  }

  #port(before: PortPlan | undefined, after: PortPlan | undefined): void {
    if (isSamePlan(before, after)) return;
    for (const chain of after === undefined ? [] : chainsOf(after))
      count(this.#chainUses, this.#chainsBefore, chain, 1);
    for (const chain of before === undefined ? [] : chainsOf(before))
      count(this.#chainUses, this.#chainsBefore, chain, -1);
    this.elements(before ? elementsOf(before) : [], after ? elementsOf(after) : []);
    if (before === undefined || before.protocol === 'sctp') return;
    const { ip, version, protocol } = before;
    const kept = new Set(after && slotsOf(after.lots));
    for (const backend of slotsOf(before.lots))
      if (!kept.has(backend)) this.#gone.push({ ip, version, protocol, backend });
  }

  elements(before: Iterable<Element>, after: Iterable<Element>): void {
    const old = new Map<string, Element>();
    for (const element of before) old.set(`${element.map} ${element.key}`, element);
    if (old.size === 0) {
      for (const element of after) this.#added.push(element);
      return;
    }
    for (const element of after) {
      const key = `${element.map} ${element.key}`;
      const known = old.get(key);
      old.delete(key);
      if (known?.value === element.value) continue;
      if (known !== undefined) this.#deleted.push(known);
      this.#added.push(element);
    }
    this.#deleted.push(...old.values());
  }

  difference(): Difference {
    const isThere = (uses: Map<string, number>, key: string) => uses.has(key);
    const [newChains, oldChains]: [string[], string[]] = [[], []];
    for (const [chain, wasThere] of this.#chainsBefore) {
      if (permanentChains.has(chain)) continue;
      const is = isThere(this.#chainUses, chain);
      if (is && !wasThere) newChains.push(chain);
      if (!is && wasThere) oldChains.push(chain);
    }
    for (const [hairpin, wasThere] of this.#hairpinsBefore) {
      const is = isThere(this.#hairpinUses, hairpin);
      if (is && !wasThere) this.#added.push(hairpinElement(hairpin));
      if (!is && wasThere) this.#deleted.push(hairpinElement(hairpin));
    }
    // A chain that another one leads to can go only after that.
    oldChains.sort((one, other) => Number(isLed(one)) - Number(isLed(other)));
    return { newChains, oldChains, deleted: this.#deleted, added: this.#added, gone: this.#gone };
  }
}

export function isEmpty({ newChains, oldChains, deleted, added }: Difference): boolean {
  return newChains.length + oldChains.length + deleted.length + added.length === 0;
}

function isSamePlan(a: PortPlan | undefined, b: PortPlan | undefined): boolean {
  return a !== undefined && b !== undefined && a.lots === b.lots && a.affinitySeconds === b.affinitySeconds;
}

function isLed(chain: string): boolean {
  return chain.startsWith('draw-');
}

/** A set has keys alone. */
function hairpinElement(hairpin: string): Element {
  const [version, address] = hairpin.split(' ');
  return { map: `hair${version}`, key: `${address} . ${address}`, value: '' };
}

function count(uses: Map<string, number>, before: Map<string, boolean>, key: string, step: 1 | -1): void {
  const known = uses.get(key) ?? 0;
  if (!before.has(key)) before.set(key, known > 0);
  if (known + step === 0) uses.delete(key);
  else uses.set(key, known + step);
}
