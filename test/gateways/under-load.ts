// One act of the check of gateways, and requests that are under way during its fault: each that failed is counted, and thrown if it
// failed when none should.

import type { Loaded } from '../support/xds-inside.ts';
import { type Id, pause, type Stage } from './stage.ts';

interface Size {
  /** New connections from each cluster. */
  readonly connections: number;
  /** Added to each time that is promised, on machines that do other work. */
  readonly slackMs: number;
}

export interface Act {
  readonly name: string;
  /** Only in `npm run check:gateways`. */
  readonly isLong?: boolean;
  /** What was seen, in words. */
  run(stage: Stage, size: Size): Promise<string>;
}

type Loads = { readonly fresh: Loaded; readonly kept: Loaded };

/** Each failed request was sent before this long after the fault, and none before it. */
export function onlyWithin(loads: Loads, atMs: number, boundMs: number): string {
  for (const [kind, { count, failures }] of Object.entries(loads)) {
    if (count < 50) throw new Error(`only ${count} requests on ${kind} connections`);
    const wrong = failures.filter((each) => each.endMs < atMs || each.atMs > atMs + boundMs);
    if (wrong.length > 0)
      throw new Error(
        `${wrong.length} of ${count} requests on ${kind} connections failed outside ${boundMs} ms: ${wrong
          .slice(0, 5)
          .map((each) => `${each.error} at ${each.atMs - atMs} ms, known at ${each.endMs - atMs} ms`)
          .join('; ')}`,
      );
  }
  return tally(loads, atMs);
}

export function none(loads: Loads): string {
  return onlyWithin(loads, 0, 0);
}

function tally(loads: Loads, atMs: number): string {
  const texts = Object.entries(loads).map(([kind, { count, failures, slowestMs }]) => {
    const last =
      failures.length === 0 ? '' : `, the last at ${Math.max(...failures.map((each) => each.atMs)) - atMs} ms`;
    return `${failures.length} of ${count} ${kind} failed${last}, slowest ${slowestMs} ms`;
  });
  return texts.join('; ');
}

/** Loads a service while something happens; the time of the fault is when `fault` begins. */
export async function underLoad(
  stage: Stage,
  { from, name, afterMs }: { readonly from: Id; readonly name: string; readonly afterMs: number },
  fault: () => Promise<unknown>,
): Promise<{ readonly loads: Loads; readonly atMs: number }> {
  const end = await stage.load(from, name);
  await pause(1500);
  const atMs = Date.now();
  await fault();
  await pause(afterMs);
  return { loads: await end(), atMs };
}
