// Counts what was refused, by caller and service, from the kernel's counters: exact and only rising while the proxy runs.

import { formatIp, parseIp } from '../../base/net/ip.ts';
import type { Clock } from '../../base/world.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import type { Refusal } from '../../kube/objects/reports/access-report.ts';
import { clusterOf } from './open-flows.ts';
import type { AccessPlan } from './plan.ts';

/** What one caller was refused since the last reading. */
export interface RefusedCall {
  /** The cluster of the caller. */
  readonly from: string;
  readonly client: string;
  readonly service: string;
  readonly endpoint: string;
  readonly port: number;
  readonly protocol: string;
  readonly packets: number;
}

const refusalsMax = 1000;
/** In place of the service, for those beyond the bound. */
const otherServices = 'other';

export class Refusals {
  readonly #clock: Pick<Clock, 'wallMs'>;
  /** Packets of each element, by set, as they were read last. */
  readonly #counted = new Map<string, ReadonlyMap<string, number>>();
  readonly #refusals = new Map<string, Refusal>();

  readonly #onRefused: (call: RefusedCall) => void;

  constructor(clock: Pick<Clock, 'wallMs'>, onRefused: (call: RefusedCall) => void = () => {}) {
    this.#clock = clock;
    this.#onRefused = onRefused;
  }

  all(): Iterable<Refusal> {
    return this.#refusals.values();
  }

  mostFrequent(count: number): Refusal[] {
    return [...this.#refusals.values()].sort((a, b) => b.packets - a.packets).slice(0, count);
  }

  /** `json` lists the set as it is now. */
  count(set: string, json: string, plan: AccessPlan): void {
    const before = this.#counted.get(set);
    const counted = new Map<string, number>();
    for (const { elem } of seenIn(json)) {
      const [source, target, protocol, port] = elem?.val?.concat ?? [];
      const [ip, to] = [parseIp(String(source)), parseIp(String(target))];
      const cluster = ip && clusterOf(ip, plan);
      if (to === undefined || cluster === undefined) continue;
      const key = elem!.val!.concat!.join(' ');
      const packets = elem!.counter?.packets ?? 0;
      const known = before?.get(key) ?? 0;
      counted.set(key, packets);
      // An element that timed out and came back counts anew.
      const more = packets >= known ? packets - known : packets;
      const tuple = `${to.family === 'IPv4' ? 4 : 6} ${formatIp(to)} . ${protocol} . ${port}`;
      const service = plan.serviceAt(tuple) ?? formatIp(to);
      const byPolicy = plan.isLeftOut(cluster, service) ? { byPolicy: true as const } : {};
      const what = { from: cluster || 'several clusters', service, port: `${port}/${protocol}`, ...byPolicy };
      if (more === 0) continue;
      this.#note(what, more);
      const call = { from: what.from, client: formatIp(ip!), service, endpoint: formatIp(to), port: Number(port) };
      if (plan.config.mode === 'Exported') this.#onRefused({ ...call, protocol: String(protocol), packets: more });
    }
    this.#counted.set(set, counted);
  }

  #note(what: Omit<Refusal, 'packets' | 'lastAt'>, packets: number): void {
    const hasRoom = this.#refusals.has(JSON.stringify(what)) || this.#refusals.size < refusalsMax;
    const named = hasRoom ? what : { from: what.from, service: otherServices, port: '-' };
    const key = JSON.stringify(named);
    const lastAt = formatTime(this.#clock.wallMs());
    this.#refusals.set(key, { ...named, packets: packets + (this.#refusals.get(key)?.packets ?? 0), lastAt });
  }
}

function seenIn(json: string): readonly SeenElement[] {
  const { nftables = [] } = JSON.parse(json) as { nftables?: { set?: { elem?: readonly SeenElement[] } }[] };
  return nftables.flatMap(({ set }) => set?.elem ?? []);
}

interface SeenElement {
  readonly elem?: {
    readonly val?: { readonly concat?: readonly (string | number)[] };
    readonly counter?: { readonly packets?: number };
  };
}
