// The same case asked of each plane: where new connections go, and which parts.

import type { PlacedCase } from './objects.ts';
import type { Stage } from './stage.ts';

export type Counts = Readonly<Record<string, number>>;

export interface Plane {
  readonly name: string;
  /** Counts by address of an endpoint, or by what went wrong. */
  ask(placed: PlacedCase, count: number): Promise<Counts>;
  /** The column of the table that holds for it. */
  readonly wants: 'wanted' | 'wantedOfNames' | 'wantedOfXds';
  /** Whether it says anything about this case. */
  readonly knows?: (placed: PlacedCase) => boolean;
}

/** Endpoints that refuse have to be found first. */
const warmUpCount = 200;
const warmUpRounds = 40;

const planes = {
  DNS: names,
  kernel: (stage: Stage) => connecting('kernel', stage.asking('pod')),
  Envoy: (stage: Stage) => connecting('Envoy', stage.asking('envoy')),
  'grpc-js': (stage: Stage) => calling(stage, 'grpc-js'),
  grpcio: (stage: Stage) => calling(stage, 'grpcio'),
};

export type PlaneName = keyof typeof planes;

export const planeNames = Object.keys(planes) as PlaneName[];

export function planeOf(name: PlaneName, stage: Stage): Plane {
  return planes[name](stage);
}

/** Names without an address; those of ports are asked by SRV, which is another question. */
function names(stage: Stage): Plane {
  const asking = stage.asking('node');
  return {
    name: 'DNS',
    wants: 'wantedOfNames',
    knows: ({ given }) => !given.endpoints.some(({ state }) => state === 'port'),
    ask: async ({ withoutAddress }, count) => {
      const name = `${withoutAddress}.shop.svc.clusterset.local`;
      const { first, any } = await asking({ do: 'look up', server: stage.resolver, name, count });
      return { ...Object.fromEntries(any.map((address) => [address, 0])), ...first };
    },
  };
}

function connecting(name: 'kernel' | 'Envoy', asking: ReturnType<Stage['asking']>): Plane {
  return {
    name,
    wants: name === 'kernel' ? 'wanted' : 'wantedOfXds',
    ask: async (placed, count) => {
      const ask = async (some: number) => {
        return (await asking({ do: 'connect', host: placed.address, port: 80, count: some })).first;
      };
      let counts: Counts = {};
      for (let round = 0; round < measuresMax; round += 1) {
        await warmUp(placed, ask);
        counts = await ask(count);
        if (!hasTrial(placed, counts)) break;
      }
      return counts;
    },
  };
}

/** One process of clients for all cases: it starts slowly. */
function calling(stage: Stage, name: 'grpc-js' | 'grpcio'): Plane {
  const start = () => stage.grpc(name === 'grpcio' ? 'python' : 'javascript');
  let client = start();
  const isServed = async (target: string) => {
    const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), stuckMs));
    const counts = await Promise.race([client.calls(1, { target }), late]);
    return counts !== undefined && !Object.keys(counts).some((each) => each.startsWith('error'));
  };
  return {
    name,
    wants: 'wantedOfXds',
    ask: async (placed, count) => {
      const target = `xds:///${placed.withAddress}.shop.svc.clusterset.local:81`;
      if (!(await isServed(target))) {
        client.stop();
        client = start();
      }
      // Its connections are opened one after the other.
      await warmUp(placed, (some) => client.calls(some, { target }), true);
      return client.calls(count, { lanes });
    },
  };
}

const lanes = 32;
/** A call ends by itself after half of that. */
const stuckMs = 30_000;

/** One that has never answered a probe gets connections again after a minute: then it is measured once more. */
function hasTrial({ given, labels }: PlacedCase, counts: Counts): boolean {
  const hasDead = given.endpoints.some(({ state }) => state === 'dead');
  return hasDead && Object.keys(counts).some((each) => !labels.has(each));
}

const measuresMax = 3;

async function warmUp(
  { labels, given }: PlacedCase,
  ask: (count: number) => Promise<Counts>,
  needsAll = false,
): Promise<void> {
  const seen = new Set<string>();
  for (let round = 0; round < warmUpRounds; round += 1) {
    const found = Object.keys(await ask(warmUpCount));
    for (const each of found) seen.add(each);
    const hasFailed = found.some((each) => !labels.has(each));
    const isMissing =
      needsAll && [...labels].some(([address, label]) => given.wantedOfXds.has(label) && !seen.has(address));
    if (!hasFailed && !isMissing) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export interface Finding {
  /** Endpoints that must not be used, errors, and those that should have been used and were not. */
  readonly wrong: readonly string[];
  /** The largest difference of one endpoint from its part, in points of a hundred. */
  readonly points: number;
}

export function compare(placed: PlacedCase, counts: Counts, { wants }: Pick<Plane, 'wants'>): Finding {
  const { labels, given } = placed;
  const wanted = given[wants];
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const each = new Map([...labels].filter(([, label]) => wanted.has(label)));
  const of = (label: string) => given.endpoints.find((some) => some.label === label)!.count;
  const wrong = [
    ...Object.keys(counts)
      .filter((to) => !each.has(to))
      .map((to) => `${labels.get(to) ?? to} ${counts[to]} times`),
    ...[...each].filter(([address]) => !(address in counts)).map(([, label]) => `${label} never`),
  ];
  const points = [...each].map(([address, label]) => {
    return Math.abs((100 * (counts[address] ?? 0)) / total - wanted.get(label)! / of(label));
  });
  return { wrong, points: Math.max(...points) };
}
