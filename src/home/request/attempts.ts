// A write that loses a race to another one is tried again from the beginning. Somebody wins every race, so this ends.

import { StatusError } from './status.ts';

export const again: unique symbol = Symbol('again');

const attemptsMax = 100;

export async function tryUntilDone<T>(what: string, attempt: () => Promise<T | typeof again>): Promise<T> {
  for (let count = 0; count < attemptsMax; count++) {
    const result = await attempt();
    if (result !== again) return result;
  }
  const message = `${what}: other writes came first ${attemptsMax} times in a row; try again later`;
  throw new StatusError('TooManyRequests', message, { details: { retryAfterSeconds: 1 } });
}
