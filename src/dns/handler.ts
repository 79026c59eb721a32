// The one shape every handler of the chain has.

import type { Answer } from './answer.ts';
import type { Query } from './wire.ts';

/** `next` hands the query on, `done` has filled the answer, `drop` stays silent. */
export type Step = 'next' | 'done' | 'drop';

/** What a handler gives back that had to ask somebody else first: a whole message, or nothing to stay silent. */
export type Later = Promise<Uint8Array | undefined>;

export interface Handler {
  readonly name: string;
  /** The query and the answer are used again after this returns: one who needs them later copies first. */
  handle(query: Query, answer: Answer): Step | Later;
}
