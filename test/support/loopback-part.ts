// A second number of 127.0.0.0/8 that no other test and no demo on this machine has until the tests of this file, or the benchmark that took it, end.

import { createRealWorld } from '../../src/base/real/world.ts';
import { takeRange } from '../../src/main/demo/range.ts';

const isTest = process.env['VITEST'] !== undefined;

export async function takeLoopbackPart(): Promise<number> {
  const { ingress, release } = await takeRange(createRealWorld());
  if (isTest) (await import('vitest')).afterAll(release);
  return Number(ingress.split('.')[1]);
}
