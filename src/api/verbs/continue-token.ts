// Where a list goes on: at which revision, after which key. Opaque to clients; what they make up is refused.

import { badRequest } from '../status-errors.ts';

export interface ContinueToken {
  /** -1 continues at whatever the newest revision is: an inconsistent list, for those who accept one. */
  readonly revision: number;
  /** Below the prefix of the list, so that a token never leads out of it. */
  readonly after: string;
}

export function formatContinueToken(token: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: 1, rev: token.revision, after: token.after })).toString('base64url');
}

export function parseContinueToken(text: string): ContinueToken {
  let raw: { v?: unknown; rev?: unknown; after?: unknown };
  try {
    raw = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    throw invalidToken();
  }
  const { rev, after } = raw ?? {};
  if (raw?.v !== 1 || !isRevision(rev) || typeof after !== 'string' || after === '') throw invalidToken();
  return { revision: rev, after };
}

function isRevision(value: unknown): value is number {
  return Number.isSafeInteger(value) && ((value as number) > 0 || value === -1);
}

function invalidToken() {
  return badRequest('continue key is not valid: it was not made by this server');
}
