// The last connections of a session's clusters, as their node proxies recorded them: read when a page asks, at most once a
// second however many pages do, and kept in bounded memory.

import { formatHostPort } from '../../base/net/host-port.ts';
import { formatElapsed } from '../../base/text/elapsed.ts';
import type { World } from '../../base/world.ts';
import type { Flow, FlowPage } from '../../proxy/flows/flow.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { idOf } from '../rows/landscape.ts';
import type { FlowRow } from '../wire/views.ts';
import { type AskedProxy, Proxies } from './proxies.ts';

type KeptFlow = Omit<FlowRow, 'reasons'>;

export interface FlowQuestion {
  readonly after: number | undefined;
  /** Part of `namespace/name`. */
  readonly service: string;
  readonly from: string;
  readonly to: string;
  readonly outcome: string;
}

interface Cursor {
  readonly holder: string;
  readonly after: number;
  readonly losses: string;
}

const readEveryMs = 900;
const keptMax = 5_000;
const shownMax = 300;
/** A proxy that records faster than this is read on at the next question. */
const pagesMax = 4;
const answerMs = 3_000;
/** Node proxies, and the servers that Envoys tell. */
const flowParts = ['proxy', 'xds'] as const;

export class FlowFeed {
  readonly #world: World;
  readonly #proxies = new Proxies();
  readonly #cursors = new Map<string, Cursor>();
  #kept: KeptFlow[] = [];
  #count = 0;
  #skipped = 0;
  #readMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #why: ReadonlyMap<HomeWatch, string> = new Map();

  constructor(world: World) {
    this.#world = world;
  }

  async ask(homes: readonly HomeWatch[], question: FlowQuestion) {
    if (this.#world.clock.monotonicMs() - this.#readMs >= readEveryMs) this.#reading ??= this.#read(homes);
    await this.#reading;
    const found = this.#kept.filter((flow) => flow.number > (question.after ?? 0) && isWanted(flow, question));
    const flows = question.after === undefined ? found.slice(-shownMax) : found.slice(0, shownMax);
    const isCut = question.after !== undefined && found.length > shownMax;
    return {
      flows,
      next: isCut ? flows.at(-1)!.number : this.#count,
      losses: [
        ...[...this.#cursors.values()].map(({ losses }) => losses),
        this.#skipped === 0 ? '' : `${this.#skipped} older ones that the dashboard has no room for`,
      ].filter((text) => text !== ''),
      missing: [...this.#why].flatMap(([watch, why]) => (why === '' ? [] : [{ cluster: idOf(watch), why }])),
    };
  }

  async #read(homes: readonly HomeWatch[]): Promise<void> {
    try {
      const { why } = await this.#proxies.ask(
        homes,
        this.#world.clock.wallMs(),
        (asked) => this.#readProxy(asked),
        flowParts,
      );
      this.#why = why;
    } finally {
      this.#readMs = this.#world.clock.monotonicMs();
      this.#reading = undefined;
    }
  }

  async #readProxy({ watch, lease, admin }: AskedProxy): Promise<void> {
    const key = `${idOf(watch)} ${lease.metadata.name}`;
    const holder = lease.spec?.holderIdentity ?? '';
    for (let count = 0; count < pagesMax; count += 1) {
      const known = this.#cursors.get(key);
      const after = known?.holder === holder ? `?after=${known.after}` : '';
      const page = await admin.ask<FlowPage>(lease, `/flows${after}`, { timeoutMs: answerMs });
      const from = watch.clusterId === '' ? text(page.from) : watch.clusterId;
      const node = text(page.node);
      for (const flow of Array.isArray(page.flows) ? page.flows : []) this.#keep({ from, node, holder }, flow);
      this.#cursors.set(key, { holder, after: Number(page.next) || 0, losses: lossesOf(node, page) });
      if (page.hasMore !== true) return;
    }
  }

  #keep({ from, node, holder }: { from: string; node: string; holder: string }, flow: Flow | null): void {
    if (flow === null || typeof flow.service !== 'string' || typeof flow.outcome !== 'string') return;
    this.#count += 1;
    const { startedMs, endedMs, answeredAfterMs, sent, received } = flow;
    this.#kept.push({
      number: this.#count,
      id: `${from}/${node}/${holder}/${flow.id}`,
      atMs: startedMs ?? endedMs,
      ...{
        from: text(flow.from) || from,
        node: text(flow.node) || node,
        outcome: text(flow.outcome),
        way: text(flow.way),
        to: text(flow.cluster),
      },
      client: flow.clientPort === 0 ? text(flow.client) : formatHostPort(text(flow.client), flow.clientPort),
      clientPod: text(flow.clientPod),
      service: `${text(flow.service)}:${flow.port}/${text(flow.protocol)}`,
      endpoint: text(flow.endpoint) === '' ? '' : formatHostPort(text(flow.endpoint), flow.endpointPort),
      answeredAfterMs,
      lastedMs: endedMs === undefined || startedMs === undefined ? undefined : Math.max(0, endedMs - startedMs),
      isOpen: endedMs === undefined,
      isOfEnvoy: flow.seenBy === 'envoy',
      status: Number.isInteger(flow.status) ? flow.status : undefined,
      sentBytes: sent?.bytes,
      receivedBytes: received?.bytes,
    });
    if (this.#kept.length < 2 * keptMax) return;
    this.#skipped += this.#kept.length - keptMax;
    this.#kept = this.#kept.slice(-keptMax);
  }
}

function isWanted(flow: KeptFlow, { service, from, to, outcome }: FlowQuestion): boolean {
  return (
    (service === '' || flow.service.includes(service)) &&
    (from === '' || flow.from === from) &&
    (to === '' || flow.to === to) &&
    (outcome === '' || flow.outcome === outcome)
  );
}

/** From another process: bounded, and text. */
function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 300) : '';
}

function lossesOf(node: string, { losses, problem }: FlowPage): string {
  const { unrecorded = 0, overflows = 0, pausedMs = 0 } = losses ?? {};
  const parts = [
    unrecorded > 0 ? `${unrecorded} connections beyond the recorded rate` : '',
    overflows > 0 ? `some at ${overflows} moments when events came too fast` : '',
    pausedMs > 0 ? `those of ${formatElapsed(pausedMs)} of rest to save CPU` : '',
    text(problem),
  ].filter((part) => part !== '');
  return parts.length === 0 ? '' : `on ${node}: ${parts.join('; ')}`;
}
