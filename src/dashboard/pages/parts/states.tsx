// The states of a list that has no rows, told apart: not there yet, nothing there, nothing found, and nothing that the bearer
// may see.

import type { ReactNode } from 'react';
import { useConnection, useNowMs, useRows } from '../data/hooks.ts';

/** After this time it says what it waits for. */
const patienceMs = 2_000;

export interface NothingProps {
  /** The kinds that the list is made of, such as `serviceexports`. */
  readonly kinds: readonly string[];
  readonly none: ReactNode;
  /** Set if a filter hides rows. */
  readonly filter?: { readonly total: number; readonly clear: () => void };
}

export function Nothing({ kinds, none, filter }: NothingProps) {
  const homes = useRows('homes');
  const connection = useConnection();
  const nowMs = useNowMs();
  if (filter !== undefined && filter.total > 0)
    return (
      <div className="nothing" role="status">
        <p>None of {filter.total} match this filter.</p>
        <button type="button" onClick={filter.clear}>
          Clear the filter
        </button>
      </div>
    );
  const loading = homes.filter(({ state }) => state === 'loading');
  if (connection.kind === 'connecting' || loading.length > 0) {
    const isLong = connection.kind !== 'connecting' || nowMs - connection.sinceMs > patienceMs;
    const waits = loading.map(({ name, why }) => `${name}: ${why}`).join('; ');
    return (
      <p className="nothing" role="status">
        {isLong ? `Waiting for ${waits || 'the dashboard'}` : 'Loading'}
      </p>
    );
  }
  const denied = homes.filter((home) => kinds.some((kind) => home.denied.includes(kind)));
  const limited = homes.filter(({ namespaces, state }) => namespaces !== undefined && state === 'live');
  if (denied.length > 0 && denied.length === homes.filter(({ state }) => state === 'live').length)
    return (
      <div className="nothing nothing-denied" role="status">
        <p>
          <strong>You may not see this.</strong> Your token may not list {kinds.join(' or ')} in{' '}
          {denied.map(({ name }) => name).join(', ')}. There may be some all the same.
        </p>
      </div>
    );
  return (
    <div className="nothing" role="status">
      <p>{none}</p>
      {limited.length > 0 && (
        <p>
          You see {limited.flatMap(({ namespaces }) => namespaces ?? []).join(', ') || 'no namespace'} only; there may
          be more elsewhere.
        </p>
      )}
    </div>
  );
}
