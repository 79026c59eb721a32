// The traffic of one bearer's clusters: reads the counters of node proxies every few seconds, notes the past, and answers for
// single services. Slower while no page is open, and the longer a reading takes.

import { errorText, type Log } from '../base/log.ts';
import type { Timer, World } from '../base/world.ts';
import type { TrafficPage } from '../proxy/flows/traffic-page.ts';
import { FlowFeed } from './feeds/flow-feed.ts';
import { Proxies } from './feeds/proxies.ts';
import type { HomeWatch } from './homes/home-watch.ts';
import { idOf, type Landscape } from './rows/landscape.ts';
import { rounded, trafficRows } from './rows/traffic.ts';
import { type History, stepMsOf } from './traffic/history.ts';
import { type ProxyPage, TrafficTotals } from './traffic/totals.ts';
import { readFigures } from './views/figures.ts';
import type { TrafficRow } from './wire/rows.ts';
import type { ClusterFigures, HistoryRange, HistoryView, Measure, Traffic, TrafficView } from './wire/views.ts';

export interface TrafficWatchOptions {
  readonly world: World;
  readonly log: Log;
  readonly history: History;
  readonly landscape: () => Landscape;
  readonly isLookedAt: () => boolean;
  readonly onRows: (rows: TrafficRow[]) => void;
}

export interface TrafficPlace {
  readonly service?: string;
  readonly from?: string;
  readonly to?: string;
}

const everyMs = 2_000;
const unseenEveryMs = 10_000;
const figuresEveryMs = 10_000;
const answerMs = 3_000;
/** Reading may take this share of the time. */
const idleShare = 3;
const rowsShownMax = 500;

export class TrafficWatch {
  readonly flows: FlowFeed;
  readonly #options: TrafficWatchOptions;
  readonly #totals = new TrafficTotals();
  readonly #proxies = new Proxies();
  /** `traffic CLUSTER` and `figures CLUSTER` that this bearer has read itself: it may see their past too. */
  readonly #read = new Set<string>();
  #why: ReadonlyMap<string, string> = new Map();
  #figures = new Map<string, { readonly figures: ClusterFigures; readonly atMs: number }>();
  #figuresMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: TrafficWatchOptions) {
    this.#options = options;
    this.flows = new FlowFeed(options.world);
    this.#after(everyMs / 4);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** Traffic of one service, of the clients of one cluster, or to the endpoints of one; the busiest first. */
  view(wanted: TrafficPlace): TrafficView {
    const rows = [...this.#totals.all()]
      .filter((one) => isOf(one, wanted))
      .sort((a, b) => b.perSecond - a.perSecond || b.tried - a.tried || (placeOf(a) < placeOf(b) ? -1 : 1));
    return {
      rows: rows.slice(0, rowsShownMax).map((one) => ({ ...one, ...rounded(one) })),
      more: Math.max(0, rows.length - rowsShownMax),
      missing: [...this.#why].flatMap(([cluster, why]) => (why === '' ? [] : [{ cluster, why }])),
    };
  }

  past(measure: Measure, range: HistoryRange): HistoryView {
    const { history, landscape, world } = this.#options;
    const group = measure === 'connections' || measure === 'failures' ? 'traffic' : 'figures';
    const clusters = membersOf(landscape()).map(idOf).sort();
    const seen = clusters.filter((cluster) => this.#read.has(`${group} ${cluster}`));
    const why = (cluster: string) =>
      (group === 'traffic' ? this.#why.get(cluster) : this.#figures.get(cluster)?.figures.why) || 'not read yet';
    return {
      measure,
      nowMs: world.clock.wallMs(),
      stepMs: stepMsOf(range),
      clusters: seen.map((cluster) => ({
        cluster,
        points: history.read(cluster, { measure, range, nowMs: world.clock.monotonicMs() }),
      })),
      hidden: clusters.filter((one) => !seen.includes(one)).map((cluster) => ({ cluster, why: why(cluster) })),
    };
  }

  #after(delayMs: number): void {
    if (this.#isStopped) return;
    const { world, log, isLookedAt } = this.#options;
    this.#timer = world.timers.after(delayMs, () => {
      const startedMs = world.clock.monotonicMs();
      this.#look()
        .catch((error: unknown) => log.error('dashboard: reading traffic failed', { error: errorText(error) }))
        .finally(() => {
          const tookMs = world.clock.monotonicMs() - startedMs;
          this.#after(Math.max(isLookedAt() ? everyMs : unseenEveryMs, idleShare * tookMs));
        });
    });
  }

  async #look(): Promise<void> {
    const { world, onRows, landscape } = this.#options;
    const homes = membersOf(landscape());
    const { answers, why } = await this.#proxies.ask(homes, world.clock.wallMs(), async ({ watch, lease, admin }) => {
      const page = await admin.ask<TrafficPage>(lease, '/traffic', { timeoutMs: answerMs });
      // A home may speak for its own cluster alone.
      const from = watch.clusterId === '' ? String(page.from) : watch.clusterId;
      return { key: `${idOf(watch)} ${lease.metadata.name} ${lease.spec?.holderIdentity}`, from, page } as ProxyPage;
    });
    if (this.#isStopped) return;
    this.#totals.take(answers, world.clock.monotonicMs());
    this.#why = new Map([...why].map(([watch, text]) => [idOf(watch), text]));
    for (const { from } of answers) this.#read.add(`traffic ${from}`);
    for (const watch of homes) if (isRefused(watch, why.get(watch))) this.#forget(idOf(watch));
    const rows = trafficRows(this.#totals.all(), this.#why);
    for (const { id, perSecond, failedPerSecond } of rows)
      if (answers.some(({ from }) => from === id))
        this.#note(id, { connections: perSecond, failures: failedPerSecond });
    onRows(rows);
    await this.#lookAtFigures();
  }

  async #lookAtFigures(): Promise<void> {
    const { world, landscape } = this.#options;
    const nowMs = world.clock.monotonicMs();
    if (nowMs - this.#figuresMs < figuresEveryMs) return;
    this.#figuresMs = nowMs;
    const { clusters } = await readFigures(landscape());
    for (const figures of clusters) {
      const { cluster, exportSeconds, changeSeconds, leaseAgeSeconds } = figures;
      const before = this.#figures.get(cluster);
      this.#figures.set(cluster, { figures, atMs: nowMs });
      if (figures.why === '') this.#read.add(`figures ${cluster}`);
      const risen = (name: 'queries' | 'cacheHits' | 'cacheMisses') => {
        const [now, was] = [figures[name], before?.figures[name]];
        return now === undefined || was === undefined || now < was ? undefined : now - was;
      };
      const [hits, misses, queries] = [risen('cacheHits'), risen('cacheMisses'), risen('queries')];
      const forwarded = (hits ?? 0) + (misses ?? 0);
      this.#note(cluster, {
        ...{ exportSeconds, changeSeconds, leaseAgeSeconds },
        queries: queries === undefined ? undefined : (1000 * queries) / (nowMs - before!.atMs),
        cacheShare: hits === undefined || forwarded === 0 ? undefined : (100 * hits) / forwarded,
      });
    }
  }

  #note(cluster: string, figures: Parameters<History['note']>[1]): void {
    this.#options.history.note(cluster, figures, this.#options.world.clock.monotonicMs());
  }

  #forget(cluster: string): void {
    this.#read.delete(`traffic ${cluster}`);
    this.#read.delete(`figures ${cluster}`);
  }
}

function isOf(one: Traffic, { service, from, to }: TrafficPlace): boolean {
  return (
    (service === undefined || one.service === service) &&
    (from === undefined || one.from === from) &&
    (to === undefined || one.to === to)
  );
}

function membersOf({ homes }: Landscape): HomeWatch[] {
  return homes.filter(({ member }) => member !== undefined);
}

/** Not merely away: what was seen before a home went away stays to be seen. */
function isRefused(watch: HomeWatch, why = ''): boolean {
  return watch.row().state === 'signed out' || why.startsWith('you may not');
}

function placeOf({ service, from, to }: Traffic): string {
  return `${service} ${from} ${to}`;
}
