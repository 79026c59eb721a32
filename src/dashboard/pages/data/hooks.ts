// Inputs of the views: rows that follow the stream, the connection, the time of the server, and answers to questions.

import { useContext, useEffect, useState, useSyncExternalStore } from 'react';
import type { CollectionName, Collections } from '../../wire/rows.ts';
import { type Connection, type Hello, type Live, LiveContext } from './live.ts';

export function useLive(): Live {
  return useContext(LiveContext);
}

export function useRows<Name extends CollectionName>(name: Name): readonly Collections[Name][] {
  const live = useLive();
  return useSyncExternalStore(live.subscribe, () => live.rows.list(name));
}

export function useRow<Name extends CollectionName>(name: Name, key: string): Collections[Name] | undefined {
  const live = useLive();
  return useSyncExternalStore(live.subscribe, () => live.rows.get(name, key));
}

export function useConnection(): Connection {
  const live = useLive();
  return useSyncExternalStore(live.subscribe, () => live.connection);
}

export function useHello(): Hello | undefined {
  const live = useLive();
  return useSyncExternalStore(live.subscribe, () => live.hello);
}

/** The server's time in whole seconds: ages tick together. */
export function useNowMs(): number {
  const live = useLive();
  return useSyncExternalStore(live.subscribe, () => Math.floor((Date.now() + live.offsetMs) / 1_000) * 1_000);
}

export type Answer<T> =
  | { readonly kind: 'asking' }
  | { readonly kind: 'answered'; readonly value: T; readonly atMs: number }
  | { readonly kind: 'failed'; readonly why: string };

/**
 * Asked again when one of `again` changes; the earlier answer stays until the next one is there. That of another question never
 * shows.
 */
export function useAnswer<T>(path: string, query: Record<string, string> | undefined, again: unknown): Answer<T> {
  const live = useLive();
  const text = JSON.stringify(query);
  const question = `${path} ${text}`;
  const [last, setLast] = useState<{ readonly question: string; readonly answer: Answer<T> }>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: `again` is a reason to ask, not a part of the question.
  useEffect(() => {
    if (text === undefined) return;
    const gone = new AbortController();
    live.ask<T>(path, JSON.parse(text), { signal: gone.signal }).then(
      (value) => setLast({ question, answer: { kind: 'answered', value, atMs: Date.now() + live.offsetMs } }),
      (error: Error) => {
        if (!gone.signal.aborted) setLast({ question, answer: { kind: 'failed', why: error.message } });
      },
    );
    return () => gone.abort();
  }, [live, path, text, again]);
  return last?.question === question ? last.answer : { kind: 'asking' };
}

/** Changes that often, while the page is shown. */
export function useTick(everyMs: number): number {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setTick((one) => one + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return tick;
}
