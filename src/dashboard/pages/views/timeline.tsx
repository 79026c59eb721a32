// What happened lately, newest first: what changed just before it broke?

import { useState } from 'react';
import type { EventRow } from '../../wire/rows.ts';
import { useRows } from '../data/hooks.ts';
import { Age } from '../parts/age.tsx';
import { shorten } from '../parts/format.ts';
import { Mark } from '../parts/health.tsx';
import { Nothing } from '../parts/states.tsx';

const kinds: readonly (EventRow['kind'] | 'all')[] = ['all', 'export', 'conflict', 'lease', 'event', 'dashboard'];

export function TimelineView() {
  const all = useRows('events');
  const [kind, setKind] = useState<EventRow['kind'] | 'all'>('all');
  const rows = all
    .filter((row) => kind === 'all' || row.kind === kind)
    .sort((a, b) => b.atMs - a.atMs || (a.id < b.id ? -1 : 1));
  return (
    <>
      <h1>Timeline</h1>
      <div className="filters">
        <label>
          Kind
          <select value={kind} onChange={(event) => setKind(event.target.value as EventRow['kind'])}>
            {kinds.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      {rows.length === 0 ? (
        <Nothing
          kinds={['serviceexports', 'events']}
          none="Nothing has happened yet."
          filter={kind === 'all' ? undefined : { total: all.length, clear: () => setKind('all') }}
        />
      ) : (
        <ol className="timeline">
          {rows.map((row) => (
            <li key={row.id}>
              <Age atMs={row.atMs} />
              <Mark health={row.health} />
              <span>
                <strong>{row.subject}</strong> <span className="small">{row.cluster}</span> <Text text={row.text} />
              </span>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

const shownMax = 160;

function Text({ text }: { readonly text: string }) {
  if (text.length <= shownMax + 20) return text;
  return (
    <details className="inline">
      <summary>{shorten(text, shownMax)}</summary>
      {text}
    </details>
  );
}
