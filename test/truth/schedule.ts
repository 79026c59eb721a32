// Which fault comes when, from a seed. Every fault comes once before one comes again. Pure.

import { seededRandom } from '../../sim/virtual-world.ts';
import type { Fault } from './faults.ts';

export interface Turn {
  /** The first one at once, others meanwhile. */
  readonly faults: readonly { readonly fault: Fault; readonly afterMs: number }[];
  /** How long each of them lasts. */
  readonly holdMs: number;
  /** How long nothing happens after everything is well again. */
  readonly restMs: number;
  /** For faults that have a size, such as the jump of a clock: -1 to 1. */
  readonly size: number;
}

/** Long enough that a fault has to be told, and sometimes that a lease runs out. */
const holdMs = { min: 20_000, max: 45_000 };
const restMs = { min: 1_000, max: 8_000 };
const secondShare = 0.2;

export function* schedule(faults: readonly Fault[], seed: number): Generator<Turn, never> {
  if (faults.length === 0) throw new Error('no fault to choose from');
  const random = seededRandom(seed);
  const between = ({ min, max }: { min: number; max: number }) => Math.round(min + random() * (max - min));
  let left: Fault[] = [];
  const next = () => {
    if (left.length === 0) left = [...faults];
    return left.splice(Math.floor(random() * left.length), 1)[0]!;
  };
  for (;;) {
    const fault = next();
    const lastsMs = between(holdMs);
    const other = random() < secondShare ? next() : undefined;
    const afterMs = Math.round(random() * (lastsMs / 2));
    const isTwo = other !== undefined && other.part !== fault.part;
    yield {
      faults: [{ fault, afterMs: 0 }, ...(isTwo ? [{ fault: other, afterMs }] : [])],
      ...{ holdMs: lastsMs, restMs: between(restMs), size: random() < 0.5 ? -random() : random() },
    };
  }
}
