import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { Parts } from '../../base/parts.ts';
import type { DemoDeps } from './clusterset.ts';
import { lockFolder } from './lock.ts';
import { startDemo } from './part.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-demo-lock-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('demo: another one runs in the folder -> refused, and its data stays', async () => {
  const running = lockFolder(directory);
  mkdirSync(join(directory, 'east'));
  writeFileSync(join(directory, 'demo.json'), '{}');
  // The folder is the first thing that it looks at.
  const deps = { directory, parts: new Parts(silentLog) } as unknown as DemoDeps;
  await expect(startDemo(deps, () => {})).rejects.toThrow(
    `a demo runs in ${directory}; stop it first, or give this one another --dir`,
  );
  expect([existsSync(join(directory, 'east')), existsSync(join(directory, 'demo.json'))]).toEqual([true, true]);
  running.release();
  lockFolder(directory).release();
});
