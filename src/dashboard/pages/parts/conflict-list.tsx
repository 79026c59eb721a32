// Conflicts of a service: who won, why, what the others have, and the ways out.

import type { ConflictView } from '../../wire/views.ts';
import { HealthBadge } from './health.tsx';

export function ConflictList({ conflicts }: { readonly conflicts: readonly ConflictView[] }) {
  return (
    <ul className="conflicts">
      {conflicts.map((one) => (
        <li key={`${one.reason} ${one.field}`} className="card conflict">
          <div className="problem-head">
            <HealthBadge health="conflict" text={one.reason} />
            <h3>
              <code>{one.field}</code>
            </h3>
          </div>
          <p>
            <strong>{one.value}</strong> of cluster <strong>{one.winner}</strong> is used: {one.why}.
          </p>
          <ul>
            {one.disagreeing.map(({ cluster, value }) => (
              <li key={cluster}>
                {cluster} has <strong>{value}</strong>
              </li>
            ))}
          </ul>
          <p className="small">
            If {one.winner} left, {one.ifWinnerLeft}.
          </p>
          <h4>Ways out</h4>
          <ul>
            {one.waysOut.map((way) => (
              <li key={way}>{way}</li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}
