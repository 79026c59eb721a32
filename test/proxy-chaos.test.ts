// The kernel's rules after random changes with kills in between: a short run of `npm run chaos:proxy`. Needs root.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { Namespaces, namespacesMissing } from './support/namespaces.ts';
import { runChaos } from './support/proxy-chaos.ts';
import { startNodeHome } from './support/proxy-processes.ts';

const why = namespacesMissing();

describe.skipIf(why !== '')(`proxy under chaos${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-chaos-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test('60 random changes, kills and changes by hand in between -> the kernel equals the plan each time', async () => {
    const net = new Namespaces('px');
    const node = net.addMachine('node', 11);
    const scratch = net.addMachine('scratch', 12);
    const home = await startNodeHome(net, node, { directory: `${directory}/home` });
    try {
      await home.order({ put: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } } });
      const result = await runChaos({ net, node, scratch, home, directory, seed: 3, changes: 60, every: 20 });
      expect(result).toEqual({ comparisons: 4, kills: expect.any(Number) });
      expect(result.kills).toBeGreaterThan(0);
    } finally {
      await home.stop();
      net.remove();
    }
  });
});
