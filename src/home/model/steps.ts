// A request that is heavy takes each of its steps in a turn of the event loop of its own; any other goes through in one.

import type { Engine } from './call.ts';

export type Step = () => Promise<void> | undefined;

const heavyBytes = 32 * 1024;

/** `bytes` is what the request works on: its body and what is stored. Called before each step. */
export function stepsOf(engine: Engine, bytes: number): Step {
  return bytes > heavyBytes ? () => engine.turns.next() : goOn;
}

function goOn(): undefined {}
