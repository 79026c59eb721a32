// The first lines of an agent: where its home and its admin endpoint are. It is ready when its home has answered; until then it
// says what it waits for.

import { sleep, type World } from '../../base/world.ts';
import { describeError } from '../../cli/exit-codes.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/objects/api-error.ts';

interface Announcement {
  readonly world: Pick<World, 'timers'>;
  readonly home: Client;
  readonly server: string;
  readonly adminUrl: string;
  readonly print: (text: string) => void;
  /** Aborted when the process is stopped. */
  readonly signal: AbortSignal;
}

const askAgainMs = 1_000;

export async function announce({ world, home, server, adminUrl, print, signal }: Announcement): Promise<void> {
  const why = await whyAway(home);
  const first = why === undefined ? `ready ${server}` : `waiting for ${server}: ${why}`;
  // In one write: who waits for the first line may read the other at once.
  print(`${first}\nadmin ${adminUrl}`);
  if (why !== undefined && (await comesBack(world, home, signal))) print(`ready ${server}`);
}

/** Undefined if the home answers, whatever it says. */
async function whyAway(home: Client): Promise<string | undefined> {
  try {
    await home.getPath('/version');
    return undefined;
  } catch (error) {
    return error instanceof ApiError ? undefined : describeError(error);
  }
}

/** False if the process is stopped before the home has answered. */
async function comesBack({ timers }: Announcement['world'], home: Client, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    await sleep(timers, askAgainMs, signal).catch(() => {});
    if (!signal.aborted && (await whyAway(home)) === undefined) return true;
  }
  return false;
}
