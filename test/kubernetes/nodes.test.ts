// A short part of `npm run test:nodes`, where the programs of a node are at hand: two real clusters, the quick start, Pods, a rollout
// under load.

import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { nodesMissing } from '../nodes/programs.ts';

const missing = nodesMissing();
/** Three minutes on two busy cores. */
const limitMs = 600_000;

test.skipIf(missing !== '')(
  `real nodes${missing === '' ? '' : ` (${missing})`} -> the quick start works with Pods`,
  () => {
    const out = execFileSync(process.execPath, ['test/nodes.ts', '--short'], { encoding: 'utf8', timeout: limitMs });
    expect(out.trim().split('\n').at(-1)).toBe('all as promised');
  },
  limitMs,
);
