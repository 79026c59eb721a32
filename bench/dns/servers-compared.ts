// Queries per second, CPU per query and latency of ours beside a bare socket and Knot; CPU of forwarding beside CoreDNS.

import { findCoredns } from '../../scripts/coredns.mjs';
import type { Figure } from '../report.ts';
import { type FullLoad, fullLoad, type Load, latencyMs, queryFile, warm } from './load.ts';
import type { Running } from './process.ts';
import { names, startBareSocket, startCoredns, startKnot, startOurs } from './servers.ts';

export async function measureServers(directory: string): Promise<Figure[]> {
  const loadOf = (server: Running, zone: string) => ({ directory, server, file: queryFile(directory, zone, 'mixed') });
  const bare = await startBareSocket();
  const bareSocket = await measured('a bare Node socket', loadOf(bare, 'svc.clusterset.local'));
  await bare.stop();
  const knot = await startKnot(directory);
  const theirs = await measured('Knot', loadOf(knot, 'svc.clusterset.local'));
  const ours = await startOurs({ federated: names, upstream: `127.0.0.1:${knot.port}` });
  const clusterset = await measured('ours, clusterset names', loadOf(ours, 'svc.clusterset.local'), {
    beside: theirs.load,
  });
  const federated = await measured(
    'ours, federation names with the source cluster',
    { ...loadOf(ours, 'fed.svc.federation'), option: '65001:77657374' },
    { beside: theirs.load, isAuthoritativeGoal: true },
  );
  const cached = await measured('ours, forwarding through the cache', loadOf(ours, 'plain.test'));
  const forwarding = await measureForwarding(directory, ours, knot);
  await ours.stop();
  await knot.stop();
  const all = [bareSocket, theirs, clusterset, federated, cached];
  return [...all.flatMap(({ figures }) => figures), ...forwarding];
}

interface Goals {
  /** Knot under the same load. */
  readonly beside?: FullLoad;
  readonly isAuthoritativeGoal?: boolean;
}

async function measured(
  name: string,
  load: Load,
  { beside, isAuthoritativeGoal }: Goals = {},
): Promise<{ readonly load: FullLoad; readonly figures: Figure[] }> {
  await warm(load);
  const full = await fullLoad(load);
  const share = beside ? full.perSecond / beside.perSecond : undefined;
  const figures: Figure[] = [
    {
      name: `${name}: queries`,
      value: full.perSecond,
      unit: '/s',
      ...(isAuthoritativeGoal ? { wanted: 'at least 0.6 of Knot', isMet: share! >= 0.6 } : {}),
    },
  ];
  if (share !== undefined) figures.push({ name: `${name}: share of Knot's queries/s`, value: share, unit: '' });
  figures.push({ name: `${name}: CPU per query`, value: full.cpuMicroseconds, unit: 'µs' });
  if (full.lost > 0) figures.push({ name: `${name}: lost`, value: full.lost, unit: 'queries' });
  const p99 = await latencyMs(load);
  const goal = name.startsWith('ours') ? { wanted: 'at most 0.5 ms', isMet: p99 <= 0.5 } : {};
  figures.push({ name: `${name}: p99 at 10,000/s`, value: p99, unit: 'ms', ...goal });
  return { load: full, figures };
}

/** CPU of a forwarded query that the cache has, and of one that it has not, beside CoreDNS with its usual cache. */
async function measureForwarding(directory: string, ours: Running, upstream: Running): Promise<Figure[]> {
  const files = {
    hit: queryFile(directory, 'plain.test', 'hits'),
    miss: queryFile(directory, 'any.plain.test', 'misses'),
  };
  const cpuOf = async (load: Load) => {
    await warm(load, { seconds: 1 });
    return (await fullLoad(load, { inFlight: 100 })).cpuMicroseconds;
  };
  const cpuOfBoth = async (server: Running) => ({
    hit: await cpuOf({ directory, server, file: files.hit }),
    miss: await cpuOf({ directory, server, file: files.miss }),
  });
  const own = await cpuOfBoth(ours);
  const figures = Object.entries(own).map(
    ([kind, value]): Figure => ({ name: `ours, forwarding, ${kind}: CPU per query`, value, unit: 'µs' }),
  );
  const coredns = findCoredns();
  if (coredns.path === undefined) {
    console.log(`CoreDNS is not measured: ${coredns.why}`);
    return figures;
  }
  const other = await startCoredns(directory, coredns.path, upstream.port);
  const theirs = await cpuOfBoth(other);
  await other.stop();
  for (const [kind, most] of [
    ['hit', 0.8],
    ['miss', 1],
  ] as const) {
    const value = own[kind] / theirs[kind];
    figures.push({ name: `CoreDNS, forwarding, ${kind}: CPU per query`, value: theirs[kind], unit: 'µs' });
    const wanted = `at most ${most}`;
    figures.push({ name: `ours against CoreDNS, ${kind}`, value, unit: '', wanted, isMet: value <= most });
  }
  return figures;
}
