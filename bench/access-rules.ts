// Run by bench/access.ts inside a network namespace: loads tuples of exported services, changes one at a time, and prints the
// times as JSON. The table stays in the namespace. Arguments: number of tuples, number of changes.

import { silentLog } from '../src/base/log.ts';
import { collectGarbage } from '../src/base/real/collect-garbage.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { keptTable } from '../src/proxy/access/kept-table.ts';
import { AccessPlan, configOf } from '../src/proxy/access/plan.ts';
import { NftProgram } from '../src/proxy/nft/edge/nft.ts';
import { TableKeeper } from '../src/proxy/nft/table-keeper.ts';
import { callerRange, callers, podRange, serviceTuples, tuplesPerService } from './access/catalog.ts';

const [count, changes] = process.argv.slice(2).map(Number) as [number, number];
const nft = new NftProgram(createRealHost());
const sources = new Map(Array.from({ length: callers }, (_, index) => [`c${index}`, [callerRange(index)]]));
const access = { mode: 'Exported', sources, podRanges: [podRange], closedRanges: [] } as const;
const plan = new AccessPlan(configOf(access, []));
const services = Math.ceil(count / tuplesPerService);
for (let service = 0; service < services; service += 1) {
  // Every other service is exported to all, the others to one cluster each.
  plan.setExport(`bench/s${service}`, { exportTo: service % 2 === 0 ? undefined : [`c${service % callers}`] });
  setSlice(service);
}
const keeper = new TableKeeper({
  ...{ world: createRealWorld(), log: silentLog, nft },
  table: keptTable(plan, () => {}),
});
plan.onDirty(() => keeper.wake());
const loadMs = await timed(() => keeper.start());
const changesMs: number[] = [];
for (let each = 0; each < changes; each += 1) {
  const service = 1 + ((each * 7919) % (services - 1));
  const gone = each % tuplesPerService;
  changesMs.push(await timed(() => change(() => setSlice(service, gone))));
  changesMs.push(await timed(() => change(() => setSlice(service))));
}
const { tuples } = plan;
collectGarbage();
const { rss } = process.memoryUsage();
await keeper.stop();
await nft.close();
process.stdout.write(`${JSON.stringify({ loadMs, changesMs, tuples, rssMb: rss / 1e6 })}\n`);
process.exit(0);

function setSlice(service: number, without?: number): void {
  const tuples = serviceTuples(service).filter((_tuple, index) => index !== without);
  plan.setSlice(`bench/s${service}-1`, { service: `bench/s${service}`, tuples });
}

async function change(make: () => void): Promise<void> {
  make();
  await keeper.settled();
}

async function timed(run: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await run();
  const { problem } = keeper.status();
  if (problem !== '') throw new Error(problem);
  return performance.now() - startedMs;
}
