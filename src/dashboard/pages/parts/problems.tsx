// Problems by their code: what it is, what it means and what to do are said once, and below it whom it hurts where.

import { Link } from 'wouter';
import type { ProblemRow } from '../../wire/rows.ts';
import { Age } from './age.tsx';
import { Code } from './code.tsx';
import { capital, shorten } from './format.ts';
import { SeverityBadge } from './health.tsx';

/** Characters of a message; all of it is below. */
const shownMax = 150;
const servicesShownMax = 5;

export function Problems({ problems }: { readonly problems: readonly ProblemRow[] }) {
  const groups = [...Map.groupBy([...problems].sort(worstFirst), ({ code }) => code)];
  return (
    <ol className="problems" aria-label="Problems">
      {groups.map(([code, rows]) => (
        <Group key={code} rows={rows} />
      ))}
    </ol>
  );
}

function worstFirst(a: ProblemRow, b: ProblemRow): number {
  const rank = ({ severity }: ProblemRow) => ['error', 'warning', 'info'].indexOf(severity);
  return rank(a) - rank(b) || b.serviceCount - a.serviceCount || (a.id < b.id ? -1 : 1);
}

function Group({ rows }: { readonly rows: readonly ProblemRow[] }) {
  const { code, severity, title, means, fix, subject } = rows[0]!;
  const isOne = rows.length === 1;
  return (
    <li className={`problem problem-${severity}`}>
      <div className="problem-head">
        <SeverityBadge severity={severity} />
        <Code code={code} />
        <h2>
          {capital(title)}: <span className="subject">{isOne ? subject : `${rows.length} times`}</span>
        </h2>
      </div>
      {rows.map((row) => (
        <Cause key={row.id} row={row} isNamed={!isOne} />
      ))}
      <details>
        <summary>What it means, and what to do</summary>
        {rows.map(({ id, message }) => (shorten(message, shownMax) === message ? null : <p key={id}>{message}</p>))}
        <p>{means}</p>
        <p>
          <strong>What to do:</strong> {fix}
        </p>
        {rows.some(({ follows }) => follows.length > 0) && (
          <>
            <p>It follows from this:</p>
            <ul>
              {[...new Set(rows.flatMap(({ follows }) => follows))].map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </>
        )}
      </details>
    </li>
  );
}

function Cause({ row, isNamed }: { readonly row: ProblemRow; readonly isNamed: boolean }) {
  const { subject, message, sinceMs, clusters, services, serviceCount } = row;
  return (
    <div className="cause">
      {isNamed ? <h3>{subject}</h3> : null}
      <p className="message">{shorten(message, shownMax)}</p>
      <dl className="facts">
        {sinceMs !== undefined && (
          <div>
            <dt>Since</dt>
            <dd>
              <Age atMs={sinceMs} />
            </dd>
          </div>
        )}
        <div>
          <dt>Seen in</dt>
          <dd>{clusters.join(', ')}</dd>
        </div>
        {serviceCount > 0 && (
          <div>
            <dt>Concerns</dt>
            <dd>
              {services.slice(0, servicesShownMax).map((key) => (
                <Link key={key} href={`/services/${key}`}>
                  {key}
                </Link>
              ))}
              {serviceCount > servicesShownMax ? ` and ${serviceCount - servicesShownMax} more` : ''}
            </dd>
          </div>
        )}
      </dl>
    </div>
  );
}
