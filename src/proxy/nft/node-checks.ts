// What this node needs for its rules, looked at again and again: forwarding, ranges that nothing else has, and routes for its own
// processes.

import type { Host } from '../../base/host.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { IpRange } from '../../base/net/ip.ts';
import type { Timer, World } from '../../base/world.ts';
import { modeProblem } from '../ranges.ts';
import { addRoutes, forwardingProblem, rangeProblems, removeRoutes } from './node-network.ts';

export interface NodeChecksOptions {
  readonly host: Host;
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  readonly ranges: readonly IpRange[];
}

const nodeCheckMs = 60_000;

/** Warned of once each; a node whose forwarding is switched on later needs no restart. */
export class NodeChecks {
  readonly #options: NodeChecksOptions;
  #ranges: readonly IpRange[];
  #routes: readonly string[] = [];
  #problems: readonly string[] = [];
  #rangeProblem = '';
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: NodeChecksOptions) {
    this.#options = options;
    this.#ranges = options.ranges;
  }

  async start(): Promise<void> {
    this.#routes = await addRoutes(this.#options.host, this.#ranges);
    await this.#check();
  }

  /** Why these ranges cannot be used in place of those before. */
  async useRanges(ranges: readonly IpRange[]): Promise<string> {
    const { host } = this.#options;
    this.#rangeProblem = modeProblem(ranges, 'nftables') ?? (await rangeProblems(host, ranges)).join('; ');
    if (this.#rangeProblem !== '') return this.#rangeProblem;
    await removeRoutes(host, { except: ranges });
    this.#ranges = ranges;
    this.#timer?.cancel();
    await this.start();
    return '';
  }

  get rangeProblem(): string {
    return this.#rangeProblem;
  }

  problems(): readonly string[] {
    return this.#problems;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #check(): Promise<void> {
    const { host, log, world } = this.#options;
    const ranges = this.#ranges;
    const forwarding = await forwardingProblem(host, new Set(ranges.map(({ family }) => family)));
    const taken = await rangeProblems(host, ranges).catch((error: unknown) => [errorText(error)]);
    const problems = [...(forwarding === '' ? [] : [forwarding]), ...taken, ...this.#routes];
    for (const problem of problems) if (!this.#problems.includes(problem)) log.warn('node', { problem });
    this.#problems = problems;
    this.#timer?.cancel();
    if (this.#isStopped) return;
    this.#timer = world.timers.after(nodeCheckMs, () => void this.#check());
  }
}
