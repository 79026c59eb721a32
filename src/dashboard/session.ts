// One bearer: watches its homes, derives rows from what it may see, and sends them to the pages that are open. The
// cost of one change does not depend on the number of services; work over everything runs seldom.

import { errorText, type Log } from '../base/log.ts';
import { version } from '../base/version.ts';
import type { Timer, World } from '../base/world.ts';
import { allChecks } from '../doctor/checks/index.ts';
import { diagnose } from '../doctor/diagnosis.ts';
import type { KubernetesObject } from '../kube/objects/object.ts';
import { type DashboardHome, type HomeWatch, type WatchedKind, watchHome } from './homes/home-watch.ts';
import { keyOfRecord, serviceOf } from './homes/kinds.ts';
import { RowStore } from './row-store.ts';
import { clusterRows } from './rows/clusters.ts';
import { doctorFacts } from './rows/doctor-facts.ts';
import { eventRows } from './rows/events.ts';
import { LagWatch } from './rows/lag.ts';
import { idOf, type Landscape } from './rows/landscape.ts';
import { externalRows, peerRows } from './rows/outside.ts';
import { problemRows, skipRows } from './rows/problems.ts';
import { serviceRows } from './rows/services.ts';
import { Sightings } from './sightings.ts';
import type { SignIn } from './sign-in.ts';
import type { History } from './traffic/history.ts';
import { TrafficWatch } from './traffic-watch.ts';
import type { Message } from './wire/rows.ts';

export interface SessionOptions {
  readonly world: World;
  readonly log: Log;
  readonly homes: readonly DashboardHome[];
  readonly signIn: SignIn;
  readonly bearer: string;
  /** Those that the bearer names, to look at one by one. */
  readonly namespaces: readonly string[];
  readonly isDemo: boolean;
  /** Shared by all sessions of the process. */
  readonly history: History;
  /** Copies that one bearer may make this process hold. */
  readonly objectsMax?: number;
  /** Called when it holds more than that. */
  readonly onTooLarge?: () => void;
}

/** One page that is open. */
export interface Listener {
  send(line: string): void;
  end(why: string): void;
}

const flushMs = 100;
const overviewMs = 1_000;
const diagnosisMs = 2_000;
/** Work over everything may take this share of the time: the more there is, the more seldom it runs. */
const idleShare = 10;
/** After a change that it shows. */
const newsMs = 150;
const beatMs = 5_000;
/** A home that loads longer does not hold up the rows of the others. */
const firstListMsMax = 3_000;
/** Rows of one bearer; beyond that the page could not show them either. */
const rowsMax = 60_000;
const defaultObjectsMax = 300_000;

export class Session {
  readonly traffic: TrafficWatch;
  readonly #options: SessionOptions;
  readonly #homes: readonly HomeWatch[];
  readonly #rows = new RowStore();
  readonly #listeners = new Set<Listener>();
  readonly #dirty = new Set<string>();
  readonly #sightings: Sightings;
  readonly #lag: LagWatch;
  readonly #timers = new Map<string, Timer>();
  readonly #dueMs = new Map<string, number>();
  readonly #restUntilMs = new Map<string, number>();
  readonly #startedMs: number;
  #areHomesDirty = true;
  #number = 0;
  #isStopped = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#startedMs = options.world.clock.monotonicMs();
    this.#sightings = new Sightings(options.world.clock);
    this.#lag = new LagWatch(options.world.clock);
    const { world, signIn, namespaces } = options;
    this.#homes = options.homes.map((home) =>
      watchHome({
        ...{ world, home, namespaces, token: signIn.tokenFor(home.name) },
        onChange: (kind, key, object) => this.#changed(kind, key, object),
        onState: () => this.#stateChanged(),
      }),
    );
    this.traffic = new TrafficWatch({
      ...{ world, log: options.log, history: options.history, landscape: () => this.landscape() },
      isLookedAt: () => this.#listeners.size > 0,
      onRows: (rows) => {
        this.#rows.replace('traffic', entries(rows));
        this.#soon();
      },
    });
    this.#look('overview', 0);
    this.#look('diagnosis', newsMs);
    this.#later('beat', beatMs, () => this.#beat());
  }

  landscape(): Landscape {
    return { homes: this.#homes, nowMs: this.#options.world.clock.wallMs() };
  }

  /** How many objects it holds copies of. */
  objects(): number {
    return this.#homes.reduce((sum, one) => sum + one.objects(), 0);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** Whether any home accepts the token; undefined while none has answered. */
  isWelcome(): boolean | undefined {
    const states = this.#homes.map((one) => one.row());
    if (states.some(({ state, asOfMs }) => state !== 'signed out' && asOfMs > 0)) return true;
    return states.every(({ state }) => state === 'signed out' || state === 'lost') ? false : undefined;
  }

  /** Why each home refuses it. */
  refusals(): string {
    return this.#homes.map((one) => `${one.home.name}: ${one.row().why}`).join('; ');
  }

  listen(listener: Listener): () => void {
    const { world, bearer, isDemo } = this.#options;
    const nowMs = world.clock.wallMs();
    const set = this.#homes.find((one) => one.set !== undefined)?.set?.metadata.name ?? '';
    this.#flush();
    const hello: Message = { kind: 'hello', bearer, version, clusterset: set, isDemo, nowMs };
    listener.send(JSON.stringify(hello));
    listener.send(this.#line(this.#rows.snapshot()));
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(why: string): void {
    this.#isStopped = true;
    this.traffic.stop();
    for (const timer of this.#timers.values()) timer.cancel();
    for (const listener of this.#listeners) listener.end(why);
    this.#listeners.clear();
    for (const home of this.#homes) home.stop();
  }

  #later(name: string, delayMs: number, run: () => void): void {
    if (this.#isStopped) return;
    this.#timers.get(name)?.cancel();
    this.#timers.set(
      name,
      this.#options.world.timers.after(delayMs, () => {
        this.#timers.delete(name);
        try {
          run();
        } catch (error) {
          // One object that nobody expected must not end the view of all others.
          this.#options.log.error('dashboard: a view failed', { view: name, error: errorText(error) });
        }
      }),
    );
  }

  #soon(): void {
    if (!this.#timers.has('flush')) this.#later('flush', flushMs, () => this.#flush());
  }

  #changed(kind: WatchedKind, key: string, object: KubernetesObject | undefined): void {
    const keys = keysOf(kind, key, object);
    for (const one of keys) this.#dirty.add(one);
    if (keys.length > 0) this.#soon();
    else this.#look('overview', newsMs);
  }

  /** Runs one of those that look at everything after this time, or sooner if it is due anyway. */
  #look(name: 'overview' | 'diagnosis', delayMs: number): void {
    const nowMs = this.#options.world.clock.monotonicMs();
    const dueMs = Math.max(nowMs + delayMs, this.#restUntilMs.get(name) ?? 0);
    if ((this.#dueMs.get(name) ?? Number.POSITIVE_INFINITY) <= dueMs) return;
    this.#dueMs.set(name, dueMs);
    this.#later(name, dueMs - nowMs, () => {
      this.#dueMs.delete(name);
      const startedMs = this.#options.world.clock.monotonicMs();
      if (name === 'overview') this.#overview();
      else this.#diagnose();
      const endedMs = this.#options.world.clock.monotonicMs();
      this.#restUntilMs.set(name, endedMs + idleShare * (endedMs - startedMs));
      this.#look(name, name === 'overview' ? overviewMs : diagnosisMs);
    });
  }

  #stateChanged(): void {
    this.#areHomesDirty = true;
    this.#soon();
  }

  #flush(): void {
    const landscape = this.landscape();
    if (this.#areHomesDirty) this.#putHomes();
    if (this.#isFirstList()) return this.#broadcast();
    const rowOf = serviceRows(landscape);
    for (const key of this.#dirty) {
      const row = rowOf(key);
      if (row !== undefined && this.#rows.size() >= rowsMax) continue;
      const before = this.#rows.get('services', key);
      if (this.#rows.put('services', key, row)) this.#sightings.service(before, row);
    }
    this.#dirty.clear();
    this.#broadcast();
  }

  /** While the first lists come in, every page of them would change every row. */
  #isFirstList(): boolean {
    const isLoading = this.#homes.some((one) => one.row().state === 'loading');
    return isLoading && this.#options.world.clock.monotonicMs() - this.#startedMs < firstListMsMax;
  }

  #putHomes(): void {
    this.#areHomesDirty = false;
    for (const one of this.#homes) {
      const row = one.row();
      const before = this.#rows.get('homes', row.name);
      // When it answered last is sent with the overview: every answer of its own would be a message.
      if (before?.state === row.state && before.why === row.why && before.asOfMs > 0) continue;
      this.#rows.put('homes', row.name, row);
      this.#sightings.home(before, row);
      this.#look('overview', 0);
      this.#look('diagnosis', newsMs);
      for (const key of this.#rows.keys('services')) this.#dirty.add(key);
    }
  }

  /** Rows of clusters, peers and external services, and the timeline: few, and looked at together. */
  #overview(): void {
    const landscape = this.landscape();
    if (this.objects() > (this.#options.objectsMax ?? defaultObjectsMax)) return this.#options.onTooLarge?.();
    for (const one of this.#homes) this.#rows.put('homes', one.home.name, one.row());
    const clusters = clusterRows(landscape);
    for (const row of clusters) {
      const before = this.#rows.get('clusters', row.id);
      if (before === undefined || before.health === row.health) continue;
      this.#sightings.cluster(before, row);
      for (const key of this.#rows.keys('services')) this.#dirty.add(key);
    }
    this.#rows.replace('clusters', entries(clusters));
    this.#rows.replace('peers', entries(this.#homes.flatMap(peerRows)));
    this.#rows.replace('external', entries(this.#homes.flatMap(externalRows)));
    this.#rows.replace('events', entries(eventRows(this.#homes, this.#sightings.all())));
    this.#flush();
  }

  #diagnose(): void {
    const landscape = this.landscape();
    this.#lag.look(landscape);
    const facts = this.#homes.flatMap((one) => doctorFacts(landscape, one, this.#lag.behind(idOf(one))) ?? []);
    const { findings, skipped } = diagnose(facts, allChecks);
    const exported = Map.groupBy(this.#exporters(), ({ cluster }) => cluster);
    const exportedBy = (cluster: string) => (exported.get(cluster) ?? []).map(({ key }) => key);
    this.#rows.replace('problems', entries(problemRows({ findings, exportedBy })));
    this.#rows.replace(
      'skipped',
      skipRows(skipped).map((row) => [`${row.cluster} ${row.why}`, row] as const),
    );
    this.#broadcast();
  }

  *#exporters(): Generator<{ cluster: string; key: string }> {
    for (const key of this.#rows.keys('services'))
      for (const { cluster } of this.#rows.get('services', key)?.exporters ?? []) yield { cluster, key };
  }

  #broadcast(): void {
    const changes = this.#rows.takeChanges();
    if (changes === undefined) return;
    this.#number += 1;
    const line = this.#line(changes);
    for (const listener of this.#listeners) listener.send(line);
  }

  #beat(): void {
    const beat: Message = { kind: 'beat', number: this.#number, nowMs: this.#options.world.clock.wallMs() };
    for (const listener of this.#listeners) listener.send(JSON.stringify(beat));
    this.#later('beat', beatMs, () => this.#beat());
  }

  #line(changes: string): string {
    return `{"kind":"change","number":${this.#number},"nowMs":${this.#options.world.clock.wallMs()},"changes":${changes}}`;
  }
}

function entries<Row extends { readonly id: string }>(rows: readonly Row[]): (readonly [string, Row])[] {
  return rows.map((row) => [row.id, row] as const);
}

/** Keys of the services whose row an object is part of. */
function keysOf(kind: WatchedKind, key: string, object: KubernetesObject | undefined): string[] {
  if (kind === 'exports' || kind === 'imports') return [key];
  if (object === undefined) return [];
  if (kind === 'shards') return keyOfRecord(object.metadata.name);
  return kind === 'slices' ? serviceOf(object as never) : [];
}
