// Where a list goes on: at which revision, after which key. Opaque to clients; what they make up is refused.

import { badRequest } from '../request/status-errors.ts';

export interface ContinueToken {
  /** -1 continues at whatever the newest revision is: an inconsistent list, for those who accept one. */
  readonly revision: number;
  /** Below the prefix of the list, so that a token never leads out of it. */
  readonly after: string;
  /** How many items come after it, if that is known. It is only for showing: anybody can write it. */
  readonly remaining?: number;
}

export function formatContinueToken(token: ContinueToken): string {
  const { revision, after, remaining } = token;
  return Buffer.from(JSON.stringify({ v: 1, rev: revision, after, left: remaining })).toString('base64url');
}

export function parseContinueToken(text: string): ContinueToken {
  let raw: { v?: unknown; rev?: unknown; after?: unknown; left?: unknown };
  try {
    raw = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    throw invalidToken();
  }
  const { rev, after, left } = raw ?? {};
  if (raw?.v !== 1 || !isRevision(rev) || typeof after !== 'string' || after === '') throw invalidToken();
  return { revision: rev, after, ...(Number.isSafeInteger(left) ? { remaining: left as number } : {}) };
}

function isRevision(value: unknown): value is number {
  return Number.isSafeInteger(value) && ((value as number) > 0 || value === -1);
}

function invalidToken() {
  return badRequest('continue key is not valid: it was not made by this server');
}
