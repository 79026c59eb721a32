// What views read: rows that follow the stream, the connection and the time of the server.

import { useContext, useSyncExternalStore } from 'react';
import type { CollectionName, Collections } from '../../wire/rows.ts';
import { type Connection, type Hello, type Live, LiveContext } from './live.ts';

export function useLive(): Live {
  return useContext(LiveContext);
}

export function useRows<Name extends CollectionName>(name: Name): readonly Collections[Name][] {
  const live = useLive();
  return useSyncExternalStore(live.subscribe, () => live.rows.list(name));
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
