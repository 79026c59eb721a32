// A process that writes to a store with many commits in flight until it is killed, and says on its output what was
// acknowledged: `ready REVISION`, then `KEY REVISION` a line, `refused REASON` once writes fail, `again` once they are
// taken again. Run as: node store-writer.ts PATH ROUND [WRITERS]

import { createRealWorld } from '../../src/base/real/world.ts';
import { openSqliteStore } from '../../src/home/open-store.ts';

const [path, round, writers = '64'] = process.argv.slice(2);
if (path === undefined || round === undefined) throw new Error('usage: store-writer.ts PATH ROUND [WRITERS]');

// Little history, so that compaction and rewriting go on all the time too.
const limits = { historyEventsMax: 500, diskSlackBytes: 2 * 1024 * 1024 };
const store = await openSqliteStore({ world: createRealWorld(), path, limits });
say(`ready ${store.revision()}`);
for (let writer = 0; writer < Number(writers); writer++) void write(writer);

async function write(writer: number): Promise<void> {
  for (let count = 0; ; count++) {
    // A hot key that is overwritten, and a key that stays: both must be there at what was acknowledged, or later.
    const hot = { key: `/hot/${writer}`, value: Buffer.from(`${round} ${count} ${'x'.repeat(500)}`) };
    const stays = { key: `/stays/${writer}/${round}/${count % 200}`, value: Buffer.from(`${count}`) };
    try {
      const result = await store.commit({ compares: [], writes: [hot, stays] });
      if (result.kind === 'committed') say(`${hot.key} ${result.revision}\n${stays.key} ${result.revision}`);
    } catch (error) {
      if (writer === 0) say(`refused ${(error as Error).message}`);
      await writable();
      if (writer === 0) say('again');
    }
  }
}

async function writable(): Promise<void> {
  while (store.writeFailure() !== undefined) await new Promise((resolve) => setTimeout(resolve, 20));
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
