// A second number of 127.0.0.0/8 that no other test and no demo on this machine has until the tests of this file end.

import { afterAll } from 'vitest';
import { createRealWorld } from '../../src/base/real/world.ts';
import { takeRange } from '../../src/main/demo/range.ts';

export async function takeLoopbackPart(): Promise<number> {
  const { ingress, release } = await takeRange(createRealWorld());
  afterAll(release);
  return Number(ingress.split('.')[1]);
}
