// The one shape every handler of the chain has.

import type { Answer } from './answer.ts';
import type { Query } from './wire.ts';

/** `next` hands the query on, `done` has filled the answer, `drop` stays silent. */
export type Step = 'next' | 'done' | 'drop';

/**
 * Gets a whole message that is its own to keep, or nothing to stay silent. More messages may follow on a connection; each is
 * made when the client has read those before.
 */
export type TakeMessage = (message: Uint8Array | undefined, more?: Iterator<Uint8Array>) => void;

/** Result of a handler that has to ask another server first. No promise: there is one for each forwarded query. */
export interface Later {
  /** Called once; the message comes at once if it is there already. */
  take(take: TakeMessage): void;
}

export function messageOf(later: Later): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => later.take(resolve));
}

export interface Handler {
  readonly name: string;
  /** The query and the answer are used again after this returns: one who needs them later copies first. */
  handle(query: Query, answer: Answer): Step | Later;
}

/** Told of every answer before its memory is used again. */
export interface Observer {
  answered(query: Query, answer: Answer): void;
}
