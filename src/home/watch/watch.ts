// A watch: the present objects if requested, then every change, while the client reads.

import type { Timer } from '../../base/world.ts';
import type { Form } from '../encoding/negotiate.ts';
import { parseIncludeObject } from '../encoding/table.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import { StatusError } from '../model/status.ts';
import { asStatusError, expired } from '../model/status-errors.ts';
import { chunkEnd, parsePlace } from '../model/stored.ts';
import { CompactedError, type Entry, type StoreEvent } from '../store/store.ts';
import { listEntries, prefixOf } from '../verbs/list.ts';
import { type ListOptions, parseListOptions } from '../verbs/list-options.ts';
import { waitForRevision } from '../verbs/revisions.ts';
import { parseSelection, type Selection } from '../verbs/selectors.ts';
import { EventStream } from './event-stream.ts';
import { bookmarkLine, type EventType, errorLine, eventLine, type LineForm, storedLine } from './watch-lines.ts';

export async function watch(engine: Engine, call: Call, form: Form): Promise<Answer> {
  const options = parseListOptions(call.query, true);
  const isInitialWanted = options.sendInitialEvents ?? !options.revision;
  if (options.revision) await waitForRevision(engine, options.revision);
  const isFromNow = isInitialWanted || !options.revision;
  const asked: Watching = {
    engine,
    call,
    options,
    selection: withName(parseSelection(call.served.kind, call.query), call.name),
    how: {
      served: call.served,
      form,
      includeObject: parseIncludeObject(call.query),
      nowMs: () => engine.world.clock.wallMs(),
      hasColumns: false,
    },
    isInitialWanted,
    afterRevision: isFromNow ? engine.store.revision() : options.revision!,
  };
  return { kind: 'stream', body: openStream(asked) };
}

interface Watching {
  readonly engine: Engine;
  readonly call: Call;
  readonly options: ListOptions;
  readonly selection: Selection;
  readonly how: LineForm;
  readonly isInitialWanted: boolean;
  readonly afterRevision: number;
}

function withName(selection: Selection, name: string): Selection {
  if (name === '') return selection;
  return {
    ...selection,
    name,
    isEverything: false,
    matchesPlace: (place) => place.name === name && selection.matchesPlace(place),
  };
}

function openStream(asked: Watching): EventStream {
  const { engine, call } = asked;
  const closers: (() => void)[] = [];
  const stream = new EventStream({
    eventsMax: engine.limits.watchQueueEventsMax,
    bytesMax: engine.limits.watchQueueBytesMax,
    ...(asked.isInitialWanted ? { nextPage: initialPages(asked) } : {}),
    overflow: () => errorLine(expired('the watcher did not read fast enough and has missed changes; list again')),
    pageFailure: (error) => errorLine(asStatusError(error)),
    onClose: () => {
      for (const close of closers) close();
    },
  });
  const end = () => stream.end();
  const revoke = () => stream.fail(errorLine(revoked(call)));
  const { endsMs, boundTo = [] } = call.credential;
  closers.push(engine.watches.enter(call.user.name, { boundTo, isStillAllowed: call.isStillAllowed, end, revoke }));
  if (endsMs !== undefined) closers.push(endWithCredential(engine, endsMs, revoke));
  // The right may have gone after the request was let in and before the watch could be found.
  void call.isStillAllowed().then((isAllowed) => isAllowed || revoke());
  closers.push(call.served.onRetired(end));
  closers.push(followStore(asked, stream));
  const { signal } = call.request;
  if (signal !== undefined) {
    const abandon = () => void stream.return();
    signal.addEventListener('abort', abandon, { once: true });
    closers.push(() => signal.removeEventListener('abort', abandon));
    if (signal.aborted) abandon();
  }
  return stream;
}

function endWithCredential({ world, limits }: Engine, endsMs: number, revoke: () => void): () => void {
  const leftMs = endsMs - world.clock.wallMs();
  // No watch lives longer, and timers have a bound of their own.
  if (leftMs > 2 * Math.max(limits.watchMsMin, limits.watchMsMax)) return () => {};
  const timer = world.timers.after(Math.max(0, leftMs), revoke);
  return () => timer.cancel();
}

function revoked({ served, user }: Call): StatusError {
  const who = `user ${JSON.stringify(user.name)}`;
  return new StatusError('Forbidden', `${served.resource}: ${who} may no longer watch this; the watch has ended`);
}

const pageLength = 500;

/** All that is there at one revision, a page at a time; the bookmark that ends it if one was asked for. */
function initialPages(asked: Watching): () => Promise<Uint8Array | undefined> {
  const { engine, call, selection, how, options, afterRevision } = asked;
  const pageOptions = { ...options, limit: pageLength, revision: afterRevision, match: 'Exact' as const };
  let continueToken: string | undefined = '';
  let isBookmarkDue = options.sendInitialEvents === true && options.allowBookmarks;
  return async () => {
    while (continueToken !== undefined) {
      const page: Awaited<ReturnType<typeof listEntries>> =
        afterRevision === 0
          ? { revision: 0, entries: [] }
          : await listEntries(engine, call, selection, { ...pageOptions, continueToken });
      continueToken = page.continueToken;
      if (page.entries.length > 0) return encodePage(asked, page.entries);
    }
    if (!isBookmarkDue) return undefined;
    isBookmarkDue = false;
    return bookmarkLine(how, afterRevision, true);
  };
}

const lines = { length: pageLength, bytes: 64 * 1024 };

async function encodePage({ engine, how }: Watching, entries: readonly Entry[]): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (let from = 0; from < entries.length; ) {
    await engine.turns.next();
    const end = chunkEnd(entries, from, lines);
    for (; from < end; from++) pieces.push(storedLine(how, 'ADDED', entries[from]!));
  }
  return Buffer.concat(pieces);
}

/** Carries changes, bookmarks and the end of time into the stream. Returns how to stop. */
function followStore(asked: Watching, stream: EventStream): () => void {
  const { engine, options, how } = asked;
  const { timers } = engine.world;
  const backlog = createBacklog(asked, stream);
  let reached = asked.afterRevision;
  let bookmarked = reached;
  const bookmark = () => {
    if (!options.allowBookmarks || reached === bookmarked) return;
    bookmarked = reached;
    stream.push(bookmarkLine(how, reached, false));
  };
  let bookmarkTimer: Timer | undefined;
  const bookmarkLater = () => {
    bookmarkTimer = timers.after(engine.limits.bookmarkMs, () => {
      bookmark();
      bookmarkLater();
    });
  };
  if (options.allowBookmarks) bookmarkLater();
  const endTimer = timers.after(durationMs(asked), () => {
    bookmark();
    stream.end();
  });
  const store = engine.store.watch({
    prefix: prefixOf(asked.call),
    afterRevision: asked.afterRevision,
    onEvents: (events) => backlog.add(events),
    onProgress: (revision) => {
      if (backlog.isEmpty()) reached = revision;
    },
    onEnd: (error) => {
      if (error instanceof CompactedError) stream.fail(errorLine(tooOld(asked.afterRevision, error.floor)));
      else stream.end();
    },
  });
  return () => {
    bookmarkTimer?.cancel();
    endTimer.cancel();
    store.cancel();
  };
}

function tooOld(revision: number, floor: number) {
  return expired(`too old resource version: ${revision} (${floor})`);
}

function durationMs({ options, engine }: Watching): number {
  const { watchMsMax } = engine.limits;
  if (options.timeoutSeconds > 0) return Math.min(options.timeoutSeconds * 1000, watchMsMax);
  return Math.round(engine.limits.watchMsMin * (1 + engine.world.random.float()));
}

/** So many events are looked at in one go; a watch that goes on from long ago has many to begin with. */
const eventsAtOnce = 100;

interface Backlog {
  add(events: readonly StoreEvent[]): void;
  isEmpty(): boolean;
}

/** Takes events in order: few at once, as when the store tells of a change; many in turns of their own. */
function createBacklog(asked: Watching, stream: EventStream): Backlog {
  let waiting: StoreEvent[] = [];
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    for (let at = 0; at < waiting.length && !stream.isEnded; ) {
      await asked.engine.turns.next();
      for (const end = at + eventsAtOnce; at < end && at < waiting.length; at++) pushEvent(asked, stream, waiting[at]!);
    }
    waiting = [];
    isRunning = false;
  };
  return {
    add: (events) => {
      if (isRunning) for (const event of events) waiting.push(event);
      else if (events.length <= eventsAtOnce) for (const event of events) pushEvent(asked, stream, event);
      else {
        waiting = [...events];
        void run();
      }
    },
    isEmpty: () => !isRunning,
  };
}

function pushEvent(asked: Watching, stream: EventStream, event: StoreEvent): void {
  const type = typeOf(asked, event);
  if (type !== undefined) stream.push(eventLine(asked.engine.memo, asked.how, type, event));
}

/** To a watcher with a selector, what no longer matches is gone and what begins to match is new. */
function typeOf(asked: Watching, event: StoreEvent): EventType | undefined {
  const isThere = event.entry !== undefined && isSelected(asked, event.entry);
  const wasThere = event.previous !== undefined && isSelected(asked, event.previous);
  if (isThere) return wasThere ? 'MODIFIED' : 'ADDED';
  return wasThere ? 'DELETED' : undefined;
}

function isSelected({ engine, call, selection }: Watching, entry: Entry): boolean {
  if (selection.isEverything) return true;
  if (!selection.matchesPlace(parsePlace(call.served.keyPrefix, entry.key))) return false;
  if (selection.matchesObject === undefined) return true;
  return selection.mayMatch(entry.latin1) && selection.matchesObject(engine.memo.object(call.served, entry));
}
