// One question to other servers, and the queries that wait for its answer.

import type { Timer, Timers } from '../../base/world.ts';
import type { ServerAddress } from '../config/config.ts';
import type { CachedReply } from './cached-reply.ts';
import type { SourceTag } from './question.ts';
import type { Race } from './race.ts';
import type { Reply } from './reply.ts';
import type { Waiter } from './waiting-room.ts';

export interface AskingOptions {
  readonly key: string;
  readonly askingKey: string;
  readonly source: SourceTag | undefined;
  readonly stale?: CachedReply;
}

export class Asking {
  /** Under which the reply is kept. */
  readonly key: string;
  /** Under which others find it who want to know the same. */
  readonly askingKey: string;
  readonly source: SourceTag | undefined;
  readonly waiters: Waiter[] = [];
  /** An old answer that is given out by now instead of waiting. */
  stale: CachedReply | undefined;
  race: Race<ServerAddress, Reply> | undefined;
  #timer: Timer | undefined;

  constructor({ key, askingKey, source, stale }: AskingOptions) {
    this.key = key;
    this.askingKey = askingKey;
    this.source = source;
    this.stale = stale;
  }

  /** Once, for the first who has an old answer; until the end, if that does not come before. */
  becomeStale(timers: Timers, delayMs: number, run: () => void): void {
    this.#timer ??= timers.after(delayMs, run);
  }

  end(): void {
    this.#timer?.cancel();
  }
}
