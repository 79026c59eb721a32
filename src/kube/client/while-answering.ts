// Work that reads much from one server, given up when the server stops answering meanwhile: a frozen server keeps its connections,
// and each read would wait for its own time limit.

import { errorText } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import { ApiError } from '../objects/api-error.ts';
import type { Client } from './client.ts';

/** The server stopped answering; the message has the reason. */
export class StoppedAnswering extends Error {
  override readonly name = 'StoppedAnswering';
}

const everyMs = 2_000;
const answerMsMax = 5_000;

/** Asks for a small answer beside the work. The work goes on until the caller closes the client. */
export async function whileAnswering<T>(
  { world, client }: { readonly world: Pick<World, 'timers'>; readonly client: Client },
  work: () => Promise<T>,
): Promise<T> {
  const done = new AbortController();
  const working = work();
  working.catch(() => {});
  try {
    return await Promise.race([working, untilSilent(world, client, done.signal)]);
  } finally {
    done.abort();
  }
}

async function untilSilent(world: Pick<World, 'timers'>, client: Client, signal: AbortSignal): Promise<never> {
  for (;;) {
    await sleep(world.timers, everyMs, signal).catch(never);
    try {
      await client.getPath('/version', { timeoutMs: answerMsMax, signal });
    } catch (error) {
      if (signal.aborted) return never();
      // Whatever it refuses, it is there.
      if (error instanceof ApiError) continue;
      throw new StoppedAnswering(`it stopped answering: ${errorText(error)}`, { cause: error });
    }
  }
}

/** The work has ended, so nothing waits for this. */
function never(): Promise<never> {
  return new Promise(() => {});
}
