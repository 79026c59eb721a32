// The acts of the check of gateways: each makes one fault or change while requests are under way, counts what failed, and throws if
// that is more than is promised.

import { until } from '../support/dns-process.ts';
import { portolan } from '../support/portolan.ts';
import { replaced, rotated } from './roots.ts';
import { type Gateway, type Id, ids, pause, podPort, type Stage } from './stage.ts';
import { type Act, none, onlyWithin, underLoad } from './under-load.ts';

/** How a gateway stops answering, and how it is mended. */
interface Fault {
  readonly name: string;
  make(stage: Stage, gateway: Gateway): Promise<unknown>;
  mend(stage: Stage, gateway: Gateway): Promise<unknown>;
  /** Failures are allowed for so long. */
  readonly boundMs: number;
}

const faults: readonly Fault[] = [
  {
    ...{ name: 'killed', boundMs: 1000 },
    make: (_stage, { envoy }) => envoy.end('SIGKILL'),
    mend: (_stage, { envoy }) => envoy.again(),
  },
  {
    ...{ name: 'frozen', boundMs: 3500 },
    make: async (_stage, { envoy }) => envoy.signal('SIGSTOP'),
    mend: async (_stage, { envoy }) => envoy.signal('SIGCONT'),
  },
  {
    ...{ name: 'black-holed', boundMs: 3500 },
    make: async ({ net }, { place }) => {
      const chain = (hook: string) =>
        `add chain inet hole ${hook} { type filter hook ${hook} priority 0; policy drop; }`;
      net.run(place, `nft '${['add table inet hole', chain('input'), chain('output')].join('; ')}'`);
    },
    mend: async ({ net }, { place }) => net.run(place, 'nft delete table inet hole'),
  },
];

/** All gateways of a cluster pass the checks of a node. */
function whenHealthy(stage: Stage, at: Id, cluster: Id): Promise<void> {
  return until(`all gateways of ${cluster} are used by ${at}`, async () => {
    const all = stage.members[cluster].gateways.map(({ place }) => place.address);
    const text = await stage.net.output(stage.members[at].node, 'curl', ['-sf', 'http://127.0.0.1:15000/clusters']);
    return all.every((address) => text.includes(`gateway/${cluster}::${address}:15443::health_flags::healthy`));
  });
}

/** As the guide says. */
async function drain(stage: Stage, gateway: Gateway): Promise<void> {
  const said = await stage.net.output(gateway.place, portolan, ['xds', 'drain']);
  if (!said.startsWith('drained')) throw new Error(`${gateway.place.name}: ${said.trim()}`);
  await gateway.envoy.end('SIGTERM');
}

/** Shares of connections within five standard deviations. */
function near(seen: Readonly<Record<string, number>>, wanted: Readonly<Record<string, number>>): void {
  const count = Object.values(seen).reduce((sum, each) => sum + each, 0);
  const parts = Object.values(wanted).reduce((sum, each) => sum + each, 0);
  for (const id of new Set([...Object.keys(seen), ...Object.keys(wanted)])) {
    const share = (wanted[id] ?? 0) / parts;
    const bound = 5 * Math.sqrt(count * share * (1 - share));
    if (Math.abs((seen[id] ?? 0) - count * share) > bound)
      throw new Error(`${id} answered ${seen[id] ?? 0} of ${count}, ${count * share} ± ${bound} wanted`);
  }
}

const shares: Act = {
  name: 'connections by name from each cluster, two with the same Pods',
  run: async (stage, { connections }) => {
    const texts: string[] = [];
    // Beside all the short ones, on the same connections to the gateways.
    const address = (await stage.addressIn('west', 'cart'))!;
    const open = await stage.tell('west', { do: 'holdPlain', name: 'kept', address, port: 81 });
    if (open !== 'open') throw new Error(`a connection that stays: ${String(open)}`);
    for (const from of ids) {
      // Two endpoints in east, one in each of the others.
      for (const [name, wanted] of [
        ['web', { east: 2, west: 1, south: 1 }],
        ['cart', { east: 1 }],
      ] as const) {
        const { answers, failures } = await stage.connect(from, name, connections);
        if (Object.keys(failures).length > 0) throw new Error(`${name} from ${from}: ${JSON.stringify(failures)}`);
        near(answers, wanted);
        texts.push(`${name} from ${from} ${JSON.stringify(answers)}`);
      }
    }
    const { isClosed } = await stage.tell<{ isClosed: boolean }>('west', { do: 'held', name: 'kept' });
    if (isClosed) throw new Error('a connection that was open beside the short ones has ended');
    // A gateway that is drained would wait for it.
    await stage.tell('west', { do: 'letGo', name: 'kept' });
    return texts.join('; ');
  },
};

const weights: Act = {
  name: 'a policy of 80 to 20 between two other networks',
  run: async (stage, { connections }) => {
    const clusters = [
      { clusters: ['east'], weight: 80 },
      { clusters: ['south'], weight: 20 },
    ];
    const policy = {
      ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata: { name: 'web' } },
      spec: { services: ['web'], clusters },
    };
    await stage.members.west.home.order({ put: policy });
    await stage.answered('west', 'web', ['east', 'south']);
    const { answers, failures } = await stage.connect('west', 'web', connections);
    await stage.members.west.home.order({ remove: policy });
    if (Object.keys(failures).length > 0) throw new Error(JSON.stringify(failures));
    near(answers, { east: 80, south: 20 });
    await stage.answered('west', 'web', ids);
    return JSON.stringify(answers);
  },
};

const oneOfTwo: readonly Act[] = faults.map((fault) => ({
  name: `one of two gateways ${fault.name}`,
  run: async (stage, { slackMs }) => {
    const [first] = stage.members.east.gateways;
    const { loads, atMs } = await underLoad(stage, { from: 'west', name: 'cart', afterMs: 6000 }, () =>
      fault.make(stage, first!),
    );
    const boundMs = fault.boundMs + slackMs;
    const text = onlyWithin(loads, atMs, boundMs);
    const hanging = [...loads.fresh.failures, ...loads.kept.failures].filter(
      (each) => each.endMs > atMs + boundMs + 500,
    );
    if (hanging.length > 0) throw new Error(`${hanging.length} requests hung at a gateway that does not answer`);
    // It comes back while others are used.
    const back = await underLoad(stage, { from: 'west', name: 'cart', afterMs: 1500 }, async () => {
      await fault.mend(stage, first!);
      await whenHealthy(stage, 'west', 'east');
    });
    return `${text}; back: ${none(back.loads)}`;
  },
}));

const allOfThem: readonly Act[] = faults.map((fault) => ({
  name: `the only gateway of a cluster ${fault.name}`,
  run: async (stage, { slackMs }) => {
    const [only] = stage.members.south.gateways;
    let leftMs = 0;
    const { loads, atMs } = await underLoad(stage, { from: 'west', name: 'web', afterMs: 2000 }, async () => {
      const startMs = Date.now();
      await fault.make(stage, only!);
      await until('it has left the kernel', async () => !(await stage.isInKernel('west', 'south')));
      leftMs = Date.now() - startMs;
    });
    await fault.mend(stage, only!);
    await until('it is back in the kernel', () => stage.isInKernel('west', 'south'));
    await stage.answered('west', 'web', ids);
    if (leftMs > 3000 + slackMs) throw new Error(`it left the kernel's maps after ${leftMs} ms`);
    return `left the maps after ${leftMs} ms; ${onlyWithin(loads, atMs, 3000 + slackMs)}`;
  },
}));

const drained: Act = {
  name: 'all gateways drained and restarted, one after the other',
  run: async (stage) => {
    const { gateways } = stage.members.east;
    const { loads } = await underLoad(stage, { from: 'west', name: 'cart', afterMs: 1000 }, async () => {
      for (const gateway of gateways) {
        await drain(stage, gateway);
        await gateway.envoy.again();
        await whenHealthy(stage, 'west', 'east');
      }
    });
    return none(loads);
  },
};

const parts: readonly Act[] = (['xds', 'agent'] as const).flatMap((role) =>
  (['SIGKILL', 'SIGSTOP'] as const).map((signal) => ({
    name: `${role} of both clusters ${signal === 'SIGKILL' ? 'killed' : 'frozen'}, and back`,
    run: async (stage: Stage) => {
      const both = [stage.members.east.roles[role], stage.members.west.roles[role]];
      const { loads } = await underLoad(stage, { from: 'west', name: 'cart', afterMs: 1500 }, async () => {
        for (const running of both) running.signal(signal);
        await pause(5000);
        await Promise.all(both.map((running) => (signal === 'SIGKILL' ? running.again() : running.signal('SIGCONT'))));
      });
      return none(loads);
    },
  })),
);

const moved: Act = {
  name: 'a service moves to another network under load: same name, same address',
  run: async (stage) => {
    const address = await stage.addressIn('west', 'move');
    const endEast = await stage.load('east', 'move');
    const { loads } = await underLoad(stage, { from: 'west', name: 'move', afterMs: 1000 }, async () => {
      await stage.serve({ name: 'move', in: 'south' });
      for (const from of ['east', 'west'] as const) await stage.answered(from, 'move', ['east', 'south']);
      await stage.type('east', ['drain', 'shop/move']);
      for (const from of ['east', 'west'] as const) await stage.answered(from, 'move', ['south']);
      // Connections that are kept end by themselves.
      await pause(3000);
      await stage.withdraw('move', 'east');
    });
    const fromEast = await endEast();
    const texts = [none(loads), none(fromEast)];
    for (const { answers } of [loads.fresh, loads.kept, fromEast.fresh, fromEast.kept])
      if (!answers['east'] || !answers['south']) throw new Error(`answered by ${JSON.stringify(answers)}`);
    await stage.answered('west', 'move', ['south']);
    for (const from of ids) {
      const now = await stage.addressIn(from, 'move');
      if (now !== address) throw new Error(`its address in ${from} is ${now}, it was ${address}`);
    }
    return `${address}; from west: ${texts[0]}; from east: ${texts[1]}`;
  },
};

const headless: Act = {
  name: 'a headless service: each endpoint in another network by its own name, and by its new address after it was replaced',
  run: async (stage, { connections }) => {
    await stage.serveHeadless({ name: 'db', in: 'east', pods: [0, 1] });
    await stage.serveHeadless({ name: 'db', in: 'south', pods: [1] });
    const answers = (from: Id, name: string, wanted: readonly string[]) =>
      until(`${name} answers ${from} with ${wanted.join(', ')}`, async () => {
        const seen = await stage.connect(from, name, 24, { port: podPort });
        return Object.keys(seen.failures).length === 0 && Object.keys(seen.answers).sort().join() === wanted.join();
      });
    // West has Pods at the same addresses.
    const wanted = { 'db-0.east.db': 'east-0', 'db-1.east.db': 'east-1', 'db-0.south.db': 'south-1' };
    for (const from of ids)
      for (const [name, pod] of Object.entries(wanted)) {
        await answers(from, name, [pod]);
        const seen = await stage.connect(from, name, Math.ceil(connections / 30), { port: podPort });
        if (Object.keys(seen.failures).length > 0 || Object.keys(seen.answers).join() !== pod)
          throw new Error(`${name} from ${from}: ${JSON.stringify(seen)}`);
      }
    // Resolvers of a libc sort what they get: connections by the name of the service would all go to one.
    const addresses = (name: string) => stage.resolved('west', name);
    const isAll = async (count: number) => (await addresses('db')).length === count;
    await until('the name of the service has all of them', () => isAll(3));
    const other = await stage.connect('west', 'db-0.east.db', 1, { port: 81 });
    if (Object.keys(other.answers).length > 0) throw new Error(`a port that is not exported: ${JSON.stringify(other)}`);
    const before = await addresses('db-0.east.db');
    const path = await stage.type('west', ['explain', 'connection', '--to', `${before[0]}:${podPort}`]);
    if (!/that endpoint by its name[\s\S]*that endpoint of east/.test(path))
      throw new Error(`explain connection: ${path}`);
    const [kept] = await addresses('db-1.east.db');
    const open = await stage.tell('west', { do: 'holdPlain', name: 'db-1', address: kept!, port: podPort });
    if (open !== 'open') throw new Error(`a connection to db-1: ${String(open)}`);
    await stage.serveHeadless({ name: 'db', in: 'east', pods: [2, 1, 0] });
    await answers('west', 'db-0.east.db', ['east-2']);
    await answers('west', 'db-2.east.db', ['east-0']);
    await stage.serveHeadless({ name: 'db', in: 'east', pods: [2, 1] });
    await until('db-2 has no name any more', async () => (await addresses('db-2.east.db')).length === 0);
    await pause(1000);
    const { isClosed } = await stage.tell<{ isClosed: boolean }>('west', { do: 'held', name: 'db-1' });
    if (isClosed) throw new Error('a connection to db-1 ended when others came and went');
    await stage.tell('west', { do: 'letGo', name: 'db-1' });
    const after = await addresses('db-0.east.db');
    if (before.join() !== after.join()) throw new Error(`db-0 had ${before.join()}, it has ${after.join()}`);
    await stage.withdraw('db', 'east');
    await until('the name of the service has one of them', () => isAll(1));
    await stage.withdraw('db', 'south');
    return `db-0.east is ${before.join()} in west`;
  },
};

const overUdp: Act = {
  name: 'UDP by name where a policy wants it carried, and no longer where the export is withdrawn or the policy is gone',
  run: async (stage, { connections }) => {
    for (const id of ['east', 'south'] as const) await stage.serve({ name: 'names', in: id, hasUdp: true });
    await stage.answered('west', 'names', ['east', 'south']);
    const asked = (count: number, lanes = 8) => stage.connect('west', 'names', count, { kind: 'udp', port: 53, lanes });
    const saidOf = async () => {
      const conditions = (await stage.importIn('west', 'names'))?.status?.conditions ?? [];
      return conditions.find(({ type }) => type === 'ClustersReached')?.message ?? '';
    };
    const before = await asked(4);
    if (Object.keys(before.answers).length > 0) throw new Error(`without a policy: ${JSON.stringify(before)}`);
    if (!(await saidOf()).includes('UDP port 53 is not carried')) throw new Error(`ClustersReached: ${await saidOf()}`);
    const policy = {
      ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata: { name: 'names' } },
      spec: { services: ['names'], udp: 'Any' },
    };
    await stage.members.west.home.order({ put: policy });
    const answeredBy = (ids: readonly Id[]) =>
      until(`west is answered over UDP by ${ids.join(' and ')}`, async () => {
        const { answers, failures } = await asked(24);
        return Object.keys(failures).length === 0 && Object.keys(answers).sort().join() === ids.join();
      });
    await answeredBy(['east', 'south']);
    if ((await saidOf()).includes('UDP')) throw new Error(`ClustersReached: ${await saidOf()}`);
    const { answers, failures } = await asked(Math.ceil(connections / 10), 4);
    if (Object.keys(failures).length > 0) throw new Error(JSON.stringify({ answers, failures }));
    near(answers, { east: 1, south: 1 });
    await stage.withdraw('names', 'east');
    await answeredBy(['south']);
    await stage.members.west.home.order({ remove: policy });
    await until('nothing is carried over UDP', async () => Object.keys((await asked(4)).answers).length === 0);
    await stage.withdraw('names', 'south');
    return JSON.stringify(answers);
  },
};

async function closedAfterMs(stage: Stage, from: Id, name: string): Promise<number> {
  const startMs = Date.now();
  await until(`${name} is closed`, async () => {
    const { isClosed } = await stage.tell<{ isClosed: boolean }>(from, { do: 'held', name });
    return isClosed;
  });
  return Date.now() - startMs;
}

const streamsEndMs = 10_000;

/** `cut` takes away what west has open to `last`; connections of south to it go on. */
function taken(name: string, service: string, cut: (stage: Stage) => Promise<unknown>, areOthersKept: boolean): Act {
  return {
    name,
    run: async (stage) => {
      const address = (await stage.addressIn('west', service))!;
      const other = (await stage.addressIn('west', 'cart'))!;
      for (const [held, to, from] of [
        ['taken', address, 'west'],
        ['other service', other, 'west'],
        ['other member', address, 'south'],
      ] as const) {
        const answer = await stage.tell(from, { do: 'holdPlain', name: held, address: to, port: 81 });
        if (answer !== 'open') throw new Error(`${held}: ${String(answer)}`);
      }
      await cut(stage);
      const tookMs = await closedAfterMs(stage, 'west', 'taken');
      if (tookMs > streamsEndMs) throw new Error(`open streams ended after ${tookMs} ms`);
      const again = await stage.tell('west', { do: 'holdPlain', name: 'again', address, port: 81 });
      if (again !== 'refused') throw new Error(`a new one afterwards: ${String(again)}`);
      await pause(1000);
      for (const [from, held] of areOthersKept
        ? ([
            ['west', 'other service'],
            ['south', 'other member'],
          ] as const)
        : []) {
        const { isClosed } = await stage.tell<{ isClosed: boolean }>(from, { do: 'held', name: held });
        if (isClosed) throw new Error(`the connection of an ${held} was closed, too`);
      }
      return `open ones ended after ${tookMs} ms`;
    },
  };
}

const narrowed = taken(
  'an export leaves a member out',
  'list',
  (stage) => stage.serve({ name: 'list', in: 'east', exportTo: ['south'] }),
  true,
);

const removed = taken(
  'a member is removed from the set',
  'cart',
  (stage) => stage.type('broker', ['broker', 'remove', 'west', '--clusterset', 'prod', '--force']),
  false,
);

/** In this order: the last one ends a membership. */
export const acts: readonly Act[] = [
  shares,
  weights,
  headless,
  overUdp,
  ...oneOfTwo,
  ...allOfThem,
  drained,
  ...parts,
  rotated,
  replaced,
  moved,
  narrowed,
  removed,
];

export async function prepare(stage: Stage): Promise<void> {
  for (const id of ids) await stage.serve({ name: 'web', in: id, endpoints: id === 'east' ? 2 : 1 });
  await stage.serve({ name: 'cart', in: 'east', endpoints: 2 });
  await stage.serve({ name: 'move', in: 'east' });
  await stage.serve({ name: 'list', in: 'east', exportTo: ['west', 'south'] });
  for (const from of ids) {
    await stage.answered(from, 'web', ids);
    for (const name of ['cart', 'move', 'list']) await stage.answered(from, name, ['east']);
  }
  await whenHealthy(stage, 'west', 'east');
}

/** The last act: what passed between the networks in all of this. */
export async function judgeCapture(stage: Stage): Promise<string> {
  const { frames, connections, records, problems, dropped } = await stage.judged();
  if (dropped > 0) throw new Error(`the capture lost ${dropped} frames`);
  if (problems.length > 0) throw new Error(`between the networks there was more than TLS: ${problems.join('; ')}`);
  if ((records.get(23) ?? 0) < 100) throw new Error('hardly anything was captured');
  const list = [...records].map(([type, count]) => `${count} of type ${type}`).join(', ');
  return `${frames} frames, ${connections} connections to gateways, TLS records: ${list}; nothing else`;
}
