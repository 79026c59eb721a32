// Changes that a session saw itself, for its timeline: bounded, the oldest go first.

import type { Clock } from '../base/world.ts';
import type { ClusterRow, EventRow, HomeRow, ServiceRow, Standing } from './wire/rows.ts';

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
    const standing = now.state === 'live' ? 'ok' : 'failed';
    const text = now.state === 'live' ? 'answers again' : `${now.state}: ${now.why}`;
    this.#add({ cluster: now.cluster || now.name, kind: 'dashboard', standing, subject: `home ${now.name}`, text });
  }

  cluster(before: ClusterRow, { id, standing, says }: ClusterRow): void {
    if (before.standing === 'unknown') return;
    this.#add({ cluster: id, kind: 'lease', standing, subject: `cluster ${id}`, text: says });
  }

  service(before: ServiceRow | undefined, now: ServiceRow | undefined): void {
    const subject = (now ?? before)?.key ?? '';
    const added = clustersOf(now).filter((one) => !clustersOf(before).includes(one));
    const gone = clustersOf(before).filter((one) => !clustersOf(now).includes(one));
    if (!this.#isSettled()) return;
    for (const cluster of added) this.#say(cluster, 'export', { standing: 'ok', subject, text: 'was exported' });
    for (const cluster of gone)
      this.#say(cluster, 'export', { standing: 'unknown', subject, text: 'is no longer exported' });
    const had = (before?.conflicts ?? []).length > 0;
    const has = (now?.conflicts ?? []).length > 0;
    const cluster = clustersOf(now ?? before).join(', ');
    if (!had && has) this.#say(cluster, 'conflict', { standing: 'conflict', subject, text: now!.conflicts.join('; ') });
    if (had && !has) this.#say(cluster, 'conflict', { standing: 'ok', subject, text: 'clusters agree again' });
  }

  /** The first lists are no changes. */
  #isSettled(): boolean {
    return this.#clock.wallMs() - this.#startedMs > 5_000;
  }

  #say(cluster: string, kind: EventRow['kind'], what: { standing: Standing; subject: string; text: string }): void {
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
