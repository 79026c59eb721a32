// Conditions of an object as Kubernetes keeps them, with their age.

import type { ConditionView } from '../../wire/views.ts';
import { useNowMs } from '../data/hooks.ts';
import { elapsed } from './format.ts';
import { Mark } from './health.tsx';

export function Conditions({ conditions }: { readonly conditions: readonly ConditionView[] }) {
  const nowMs = useNowMs();
  if (conditions.length === 0) return <p className="small">No conditions yet.</p>;
  return (
    <ul className="conditions">
      {conditions.map((one) => (
        <li key={one.type}>
          <Mark health={healthOf(one)} /> <strong>{one.type}</strong> {one.status}
          {one.reason === '' ? '' : ` (${one.reason.replaceAll(',', ', ')})`}
          {one.sinceMs === undefined ? null : <span className="small"> for {elapsed(nowMs - one.sinceMs)}</span>}
          {one.message === '' ? null : <div className="small">{one.message}</div>}
        </li>
      ))}
    </ul>
  );
}

/** `Conflict: True` is bad, `Valid: True` is good. */
function healthOf({ type, status }: ConditionView) {
  if (status === 'Unknown') return 'unknown';
  const isBad = type === 'Conflict' ? status === 'True' : status === 'False';
  if (!isBad) return 'ok';
  return type === 'Conflict' ? 'conflict' : 'failed';
}
