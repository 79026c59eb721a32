// Gets, pages of lists, and how soon the last of many watchers knows of a write.

import { type Connection, connect, startApi } from '../../test/support/api-process.ts';
import { type Figure, percentile } from '../report.ts';
import { inFlight, perSecond, sleep } from './load.ts';
import { createNamespace, creator, reader, services } from './objects.ts';

const connections = 10;
const watchersEach = 10;
const writes = 500;

export async function measureReads(directory: string): Promise<Figure[]> {
  const api = await startApi({ data: `${directory}/reads` });
  try {
    const connection = await connect(api.kubeconfig);
    await createNamespace(connection);
    await inFlight(64, 5000, creator(connection, 'Service', 'read'));
    await inFlight(64, 3000, reader(connection, `${services}/read-1`));
    const gets = await perSecond(64, 4000, reader(connection, `${services}/read-1`));
    const pages = await perSecond(4, 4000, reader(connection, `${services}?limit=500`));
    connection.close();
    return [
      { name: 'gets, 64 in flight', value: gets, unit: '/s' },
      { name: 'pages of 500 listed, 4 in flight', value: pages, unit: '/s' },
    ];
  } finally {
    await api.stop();
  }
}

export async function measureWatchers(directory: string): Promise<Figure[]> {
  const api = await startApi({ data: `${directory}/watchers` });
  try {
    const connection = await connect(api.kubeconfig);
    await createNamespace(connection);
    await inFlight(16, 1000, creator(connection, 'Service', 'warm'));
    const watched = new Arrivals(connections * watchersEach);
    const readers = await Promise.all(Array.from({ length: connections }, () => connect(api.kubeconfig)));
    for (const each of readers) for (let n = 0; n < watchersEach; n += 1) watched.follow(each);
    await sleep(1000);
    const delays = await delaysOf(watched, connection);
    for (const each of [...readers, connection]) each.close();
    return figuresOf(delays);
  } finally {
    await api.stop();
  }
}

/** From before a write is sent to when the last watcher has read of it, in order of size. */
async function delaysOf(watched: Arrivals, connection: Connection): Promise<number[]> {
  const create = creator(connection, 'Service', 'watched');
  const delays: number[] = [];
  for (let n = 1; n <= writes; n += 1) {
    const all = watched.expect(`watched-${n}`);
    const writtenAt = performance.now();
    await create();
    delays.push((await all) - writtenAt);
  }
  return delays.sort((one, other) => one - other);
}

function figuresOf(delays: readonly number[]): Figure[] {
  const name = `write to the last of ${connections * watchersEach} watchers`;
  const p99 = percentile(delays, 0.99);
  return [
    { name: `${name}, p50`, value: percentile(delays, 0.5), unit: 'ms' },
    { name: `${name}, p99`, value: p99, unit: 'ms', wanted: 'under 50 ms', isMet: p99 < 50 },
  ];
}

/** Counts who has read of an object, by its name. */
class Arrivals {
  readonly #watchers: number;
  readonly #waiting = new Map<string, { count: number; done: (atMs: number) => void }>();

  constructor(watchers: number) {
    this.#watchers = watchers;
  }

  /** When all watchers have read of it. */
  expect(name: string): Promise<number> {
    return new Promise((done) => this.#waiting.set(name, { count: 0, done }));
  }

  follow(connection: Connection): void {
    const stream = connection.stream(
      `${services}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`,
    );
    stream.setEncoding('utf8');
    let rest = '';
    stream.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() as string;
      for (const line of lines) this.#note(/"name":"([^"]+)"/.exec(line)?.[1] ?? '');
    });
    stream.on('error', () => {});
  }

  #note(name: string): void {
    const arrival = this.#waiting.get(name);
    if (arrival === undefined) return;
    arrival.count += 1;
    if (arrival.count === this.#watchers) arrival.done(performance.now());
  }
}
