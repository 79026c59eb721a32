// A simulated week of 50 clusters that renew their leases every ten seconds, with every batch really on disk: prints
// how large the files became and fails if they ever exceed twice the live data plus 64 MB.
// Run as: node test/chaos/store-week.ts [DAYS]

import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/home/open-store.ts';
import { leaseCount, renewLeases } from '../../src/home/store/testing/leases.ts';
import { TestWorld } from '../../src/home/store/testing/test-world.ts';

const days = Number(process.argv[2] ?? 7);
const tickMs = 10_000;
const ticks = Math.floor((days * 86_400_000) / tickMs);
const slackBytes = 64 * 1024 * 1024;

const directory = mkdtempSync(join(tmpdir(), 'portolan-week-'));
const clock = new TestWorld();
const path = join(directory, 'store.db');
const store = await openSqliteStore({ world: clock.world, path });
const started = performance.now();
let fileBytesMax = 0;
let rssMax = 0;
for (let tick = 0; tick < ticks; tick++) {
  await renewLeases(store, tick);
  clock.advance(tickMs);
  if (tick % 10 === 0) check();
  if (tick % 8640 === 0) report(tick);
}
report(ticks);
const { revision, entries } = await store.range({ prefix: '' });
await store.close();
const reopenStarted = performance.now();
const reopened = await openSqliteStore({ world: clock.world, path });
if (reopened.revision() !== revision || entries.length !== leaseCount) throw new Error('the week was not kept');
print({ reopenMs: Math.round(performance.now() - reopenStarted), closedFileBytes: fileBytes() });
await reopened.close();
rmSync(directory, { recursive: true });

function check(): void {
  const size = fileBytes();
  fileBytesMax = Math.max(fileBytesMax, size);
  rssMax = Math.max(rssMax, process.memoryUsage().rss);
  const bound = 2 * store.stats().liveBytes + slackBytes;
  if (size > bound) throw new Error(`files use ${size} bytes at revision ${store.revision()}, the bound is ${bound}`);
}

function report(tick: number): void {
  print({
    simulatedDay: Number(((tick * tickMs) / 86_400_000).toFixed(1)),
    writes: store.revision(),
    seconds: Math.round((performance.now() - started) / 1000),
    liveBytes: store.stats().liveBytes,
    fileBytes: fileBytes(),
    fileBytesMax,
    rssMbMax: Math.round(rssMax / 1e6),
  });
}

function fileBytes(): number {
  return readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
}

function print(fields: Record<string, number>): void {
  process.stdout.write(`${JSON.stringify(fields)}\n`);
}
