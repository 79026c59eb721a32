// Changes that a session saw itself, for its timeline: bounded, the oldest go first.

import type { Clock } from '../base/world.ts';
import type { ClusterRow, EventRow, Health, HomeRow, ServiceRow } from './wire/rows.ts';

const sightingsMax = 300;

export class Sightings {
  readonly #clock: Clock;
  #rows: EventRow[] = [];
  #count = 0;
  #startedMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.wallMs();
  }

  all(): readonly EventRow[] {
    return this.#rows;
  }

  home(before: HomeRow | undefined, now: HomeRow): void {
    if (before === undefined || before.state === now.state || before.state === 'loading') return;
    const health = now.state === 'live' ? 'ok' : 'failed';
    const text = now.state === 'live' ? 'answers again' : `${now.state}: ${now.why}`;
    this.#add({ cluster: now.cluster || now.name, kind: 'dashboard', health, subject: `home ${now.name}`, text });
  }

  cluster(before: ClusterRow, { id, health, says }: ClusterRow): void {
    if (before.health === 'unknown') return;
    this.#add({ cluster: id, kind: 'lease', health, subject: `cluster ${id}`, text: says });
  }

  service(before: ServiceRow | undefined, now: ServiceRow | undefined): void {
    const subject = (now ?? before)?.key ?? '';
    const added = clustersOf(now).filter((one) => !clustersOf(before).includes(one));
    const gone = clustersOf(before).filter((one) => !clustersOf(now).includes(one));
    if (!this.#isSettled()) return;
    for (const cluster of added) this.#say(cluster, 'export', { health: 'ok', subject, text: 'was exported' });
    for (const cluster of gone)
      this.#say(cluster, 'export', { health: 'unknown', subject, text: 'is no longer exported' });
    const had = (before?.conflicts ?? []).length > 0;
    const has = (now?.conflicts ?? []).length > 0;
    const cluster = clustersOf(now ?? before).join(', ');
    if (!had && has) this.#say(cluster, 'conflict', { health: 'conflict', subject, text: now!.conflicts.join('; ') });
    if (had && !has) this.#say(cluster, 'conflict', { health: 'ok', subject, text: 'clusters agree again' });
  }

  /** The first lists are no changes. */
  #isSettled(): boolean {
    return this.#clock.wallMs() - this.#startedMs > 5_000;
  }

  #say(cluster: string, kind: EventRow['kind'], what: { health: Health; subject: string; text: string }): void {
    this.#add({ cluster, kind, ...what });
  }

  #add(row: Omit<EventRow, 'id' | 'atMs'>): void {
    this.#count += 1;
    this.#rows.push({ ...row, id: `seen ${this.#count}`, atMs: this.#clock.wallMs() });
    this.#rows = this.#rows.slice(-sightingsMax);
  }
}

function clustersOf(row: ServiceRow | undefined): string[] {
  return (row?.exporters ?? []).map(({ cluster }) => cluster);
}
