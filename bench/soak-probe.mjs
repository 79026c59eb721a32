// Loaded into the demo by the soak test: on SIGUSR2 it collects garbage and writes what the process holds to the file that
// PORTOLAN_SOAK_FILE names.

import { writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

const file = process.env.PORTOLAN_SOAK_FILE;

if (isMainThread && file !== undefined) {
  setFlagsFromString('--expose_gc');
  const collect = runInNewContext('gc');
  process.on('SIGUSR2', () => {
    collect();
    const { heapUsed, external, rss } = process.memoryUsage();
    const handles = process.getActiveResourcesInfo().length;
    writeFileSync(file, JSON.stringify({ heapUsed, external, rss, handles }));
  });
}
