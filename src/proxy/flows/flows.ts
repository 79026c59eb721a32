// The flows of a node: the kernel's events, the last minutes in memory, and how much of them is missing.

import type { Timers } from '../../base/world.ts';
import type { RefusedCall } from '../access/refusals.ts';
import type { ProxyState } from '../state.ts';
import type { FlowFilter, FlowLosses, FlowPage } from './flow.ts';
import type { LogPage } from './flow-log.ts';
import type { FlowOwners } from './owners.ts';
import { FlowRecorder } from './recorder.ts';

/** The kernel's events, line by line. */
export interface FlowEvents {
  start(): void;
  stop(): Promise<void>;
  readonly overflows: number;
  readonly pausedMs: number;
  readonly problem: string;
}

export interface KernelFlowsOptions {
  readonly world: { readonly timers: Timers; readonly clock: { wallMs(): number } };
  readonly owners: FlowOwners;
  /** The Pod with an address. */
  readonly podAt?: (address: string) => string | undefined;
  readonly open: (options: { readonly timers: Timers; readonly onLine: (line: string) => void }) => FlowEvents;
  /** Connections that the kernel has not told of. */
  readonly unrecorded: () => Promise<number>;
}

/** Where the flows of a proxy are recorded. */
export interface FlowSource {
  page(after: number | undefined, filter: FlowFilter): LogPage;
  losses(): Promise<FlowLosses>;
  readonly problem: string;
}

export class KernelFlows implements FlowSource {
  readonly #options: KernelFlowsOptions;
  readonly #recorder: FlowRecorder;
  readonly #events: FlowEvents;

  constructor(options: KernelFlowsOptions) {
    const { world, owners, podAt } = options;
    this.#options = options;
    this.#recorder = new FlowRecorder(owners, { podAt });
    const onLine = (line: string) => this.#recorder.line(line, world.clock.wallMs());
    this.#events = options.open({ timers: world.timers, onLine });
  }

  start(): void {
    this.#events.start();
  }

  stop(): Promise<void> {
    return this.#events.stop();
  }

  /** By the rules of access of this node, which serves `cluster`. */
  denied(denied: RefusedCall, cluster: string): void {
    this.#recorder.denied(denied, cluster, this.#options.world.clock.wallMs());
  }

  get problem(): string {
    return this.#events.problem;
  }

  page(after: number | undefined, filter: FlowFilter): LogPage {
    return this.#recorder.page(after, filter, this.#options.world.clock.wallMs());
  }

  async losses(): Promise<FlowLosses> {
    const { overflows, pausedMs } = this.#events;
    const unrecorded = await this.#options.unrecorded().catch(() => undefined);
    return { unrecorded, overflows, pausedMs };
  }
}

export interface AskedFlows extends FlowFilter {
  readonly after?: number;
}

export async function flowPage(
  source: FlowSource,
  { state, node }: { readonly state: ProxyState; readonly node: string },
  { after, ...filter }: AskedFlows,
): Promise<FlowPage> {
  const page = source.page(after, filter);
  return { node, from: state.view.self.cluster, ...page, losses: await source.losses(), problem: source.problem };
}
