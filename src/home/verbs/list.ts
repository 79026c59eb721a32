// A list at one revision, whole or page by page. Entries are looked into only if a selector asks for more than names. The
// token of the next page is opaque to clients; one that they make up is refused.

import type { Answer, Call, Engine, ListAnswer, Place } from '../model/call.ts';
import type { Served } from '../model/registry.ts';
import { StatusError } from '../model/status.ts';
import { badRequest, expired, tooOldForList } from '../model/status-errors.ts';
import { objectKey, parsePlace, parseStored } from '../model/stored.ts';
import { CompactedError, type Entry, type RangeResult } from '../store/store.ts';
import { type ListOptions, parseListOptions } from './list-options.ts';
import { waitForRevision } from './revisions.ts';
import { parseSelection, type Selection } from './selectors.ts';

export async function list(engine: Engine, call: Call): Promise<Answer> {
  const options = parseListOptions(call.query, false);
  const selection = parseSelection(call.served.kind, call.query);
  return { kind: 'list', list: await listEntries(engine, call, selection, options) };
}

export async function listEntries(
  engine: Engine,
  place: Place,
  selection: Selection,
  options: ListOptions,
): Promise<ListAnswer> {
  const token = options.continueToken === '' ? undefined : parseContinueToken(options.continueToken);
  if (token === undefined && options.revision !== undefined) await waitForRevision(engine, options.revision);
  const isExact = options.match === 'Exact' || (options.match === '' && options.limit > 0);
  const pinned = token?.revision ?? (isExact && options.revision !== 0 ? options.revision : undefined);
  try {
    if (selection.name !== undefined && isOnePlace(place)) return await listOne(engine, place, selection, pinned);
    const { after, remaining: remainingBefore } = token ?? {};
    return await listRange(engine, place, selection, { limit: options.limit, pinned, after, remainingBefore });
  } catch (error) {
    throw error instanceof CompactedError ? tooOld(token) : error;
  }
}

/** The prefix under which everything lies that a list or a watch can show. */
export function prefixOf(place: Place): string {
  const { keyPrefix } = place.served;
  return place.namespace === '' ? keyPrefix : `${keyPrefix}${place.namespace}/`;
}

function isOnePlace(place: Place): boolean {
  return place.namespace !== '' || !place.served.kind.isNamespaced;
}

/** A key sorts before all others that begin with it. */
async function listOne(
  engine: Engine,
  place: Place,
  selection: Selection,
  pinned: number | undefined,
): Promise<ListAnswer> {
  const key = objectKey(place.served.keyPrefix, place.namespace, selection.name!);
  const revision = pinned === -1 ? undefined : pinned;
  const found = await engine.store.range({ ...request(key, undefined, revision, 1), countMax: 0 });
  const entries = found.entries.filter((each) => each.key === key && isSelected(place.served, selection, each));
  return { revision: found.revision, entries };
}

interface Range {
  readonly limit: number;
  readonly pinned: number | undefined;
  readonly after: string | undefined;
  /** The remainder that the previous page announced: it holds at the same revision. */
  readonly remainingBefore: number | undefined;
}

async function listRange(engine: Engine, place: Place, selection: Selection, range: Range): Promise<ListAnswer> {
  const prefix = prefixOf(place);
  const page = await readPage(engine, prefix, selection, place.served, range);
  const { revision, entries, last } = page;
  if (page.remaining === 0 || last === undefined) return { revision, entries };
  const after = last.key.slice(prefix.length);
  if (!selection.isEverything) return { revision, entries, continueToken: formatContinueToken({ revision, after }) };
  const { remainingBefore } = range;
  const remaining = remainingBefore === undefined ? page.remaining : remainingBefore - entries.length;
  const continueToken = formatContinueToken({ revision, after, remaining });
  return { revision, entries, continueToken, remainingItemCount: remaining };
}

interface Page {
  readonly revision: number;
  readonly entries: readonly Entry[];
  /** The last key looked at, where the next page begins. */
  readonly last: Entry | undefined;
  readonly remaining: number;
}

/** How many keys are read at once while looking for those that a selector wants, and how many when all are wanted. */
const scanLength = 1000;
const readLength = 10_000;
/** So much may be looked into before others get a turn. */
const scanBytes = 256 * 1024;

async function readPage(
  engine: Engine,
  prefix: string,
  selection: Selection,
  served: Served,
  range: Range,
): Promise<Page> {
  const limit = range.limit > 0 ? range.limit : Number.POSITIVE_INFINITY;
  const revision = range.pinned === -1 ? undefined : range.pinned;
  const after = range.after === undefined ? undefined : prefix + range.after;
  if (selection.isEverything) {
    if (range.limit === 0 || range.limit > readLength) return readAll(engine, prefix, { after, revision, limit });
    const isCounted = range.remainingBefore !== undefined;
    const asked = request(prefix, after, revision, range.limit);
    return wholePage(await engine.store.range({ ...asked, ...(isCounted ? { countMax: 1 } : {}) }));
  }
  const entries: Entry[] = [];
  let last: Entry | undefined;
  let at = { revision, after };
  for (;;) {
    const found = await engine.store.range({ ...request(prefix, at.after, at.revision, scanLength), countMax: 1 });
    let looked = 0;
    await engine.turns.next();
    for (const [index, entry] of found.entries.entries()) {
      last = entry;
      looked += entry.latin1.length;
      if (looked > scanBytes) {
        await engine.turns.next();
        looked = 0;
      }
      if (isSelected(served, selection, entry) && entries.push(entry) >= limit) {
        const remaining = found.entries.length - index - 1 + found.remaining;
        return { revision: found.revision, entries, last, remaining };
      }
    }
    if (found.remaining === 0) return { revision: found.revision, entries, last, remaining: 0 };
    at = { revision: found.revision, after: last!.key };
  }
}

interface Reading {
  readonly after: string | undefined;
  readonly revision: number | undefined;
  readonly limit: number;
}

/** A long list at one revision, some of it in each turn. */
async function readAll(engine: Engine, prefix: string, { after, revision, limit }: Reading): Promise<Page> {
  const entries: Entry[] = [];
  let at = { after, revision };
  for (;;) {
    const wanted = Math.min(readLength, limit - entries.length);
    const isLast = wanted < readLength || limit - entries.length === readLength;
    const asked = request(prefix, at.after, at.revision, wanted);
    const found = await engine.store.range({ ...asked, ...(isLast ? {} : { countMax: 1 }) });
    for (const entry of found.entries) entries.push(entry);
    const last = entries.at(-1);
    if (found.remaining === 0 || isLast || last === undefined) {
      return { revision: found.revision, entries, last, remaining: found.remaining };
    }
    at = { after: last.key, revision: found.revision };
    await engine.turns.next();
  }
}

function wholePage(found: RangeResult): Page {
  return { ...found, last: found.entries.at(-1) };
}

function request(prefix: string, after: string | undefined, revision: number | undefined, limit: number | undefined) {
  return {
    prefix,
    after,
    revision,
    limit,
  };
}

function isSelected(served: Served, selection: Selection, entry: Entry): boolean {
  if (!selection.matchesPlace(parsePlace(served.keyPrefix, entry.key))) return false;
  if (selection.matchesObject === undefined) return true;
  return selection.mayMatch(entry.latin1) && selection.matchesObject(parseStored(served, entry));
}

function tooOld(token: ContinueToken | undefined): StatusError {
  if (token === undefined) return expired(tooOldForList);
  const message =
    'the continue token is too old; list again from the start, or go on with the token of this answer, which shows the rest as it is now';
  const continueToken = formatContinueToken({ revision: -1, after: token.after });
  return new StatusError('Expired', message, { metadata: { continue: continueToken } });
}

interface ContinueToken {
  /** -1 continues at the newest revision: an inconsistent list, for clients that accept one. */
  readonly revision: number;
  /** Below the prefix of the list, so that a token never leads out of it. */
  readonly after: string;
  /** How many items come after it, if that is known. It is only for display: any client can write it. */
  readonly remaining?: number;
}

function formatContinueToken(token: ContinueToken): string {
  const { revision, after, remaining } = token;
  return Buffer.from(JSON.stringify({ v: 1, rev: revision, after, left: remaining })).toString('base64url');
}

function parseContinueToken(text: string): ContinueToken {
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
