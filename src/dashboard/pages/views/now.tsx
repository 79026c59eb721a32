// The start page: what is wrong now, by cause, since when and whom it hurts; below, the clusters by region.

import { Link } from 'wouter';
import type { ClusterRow, ProblemRow } from '../../wire/rows.ts';
import { useConnection, useNowMs, useRows } from '../data/hooks.ts';
import { capital, count, dayTime, elapsed } from '../parts/format.ts';
import { Mark, SeverityBadge } from '../parts/standing.tsx';
import { Nothing } from '../parts/states.tsx';

export function NowView() {
  const problems = [...useRows('problems')].sort(worstFirst);
  return (
    <>
      <h1>{problems.length === 0 ? 'What is wrong now' : `${count(problems.length, 'problem')} now`}</h1>
      {problems.length === 0 ? <AllWell /> : null}
      <ol className="problems">
        {problems.map((problem) => (
          <Problem key={problem.id} problem={problem} />
        ))}
      </ol>
      <Skipped />
      <RegionStrip />
    </>
  );
}

function worstFirst(a: ProblemRow, b: ProblemRow): number {
  const rank = ({ severity }: ProblemRow) => ['error', 'warning', 'info'].indexOf(severity);
  return rank(a) - rank(b) || b.serviceCount - a.serviceCount || (a.id < b.id ? -1 : 1);
}

function AllWell() {
  const homes = useRows('homes');
  const connection = useConnection();
  const isWhole = connection.kind === 'live' && homes.length > 0 && homes.every(({ state }) => state === 'live');
  if (!isWhole) return <Nothing kinds={['serviceexports']} none="Nothing was found where the dashboard could look." />;
  return (
    <p className="all-well" role="status">
      <Mark standing="ok" /> Nothing is wrong in {homes.map(({ name }) => name).join(', ')}.
    </p>
  );
}

/** Of a message; all of it is below. */
const shownMax = 230;

function Problem({ problem }: { readonly problem: ProblemRow }) {
  const nowMs = useNowMs();
  const isLong = problem.message.length > shownMax + 40;
  const { code, severity, title, subject, message, means, fix, sinceMs, clusters, services, serviceCount, follows } =
    problem;
  return (
    <li className={`problem problem-${severity}`}>
      <div className="problem-head">
        <SeverityBadge severity={severity} />
        <h2>
          {capital(title)}: <span className="subject">{subject}</span>
        </h2>
        <code className="code">{code}</code>
      </div>
      <p className="message">{isLong ? `${message.slice(0, shownMax)}…` : message}</p>
      <dl className="facts">
        {sinceMs !== undefined && (
          <div>
            <dt>Since</dt>
            <dd>
              {dayTime(sinceMs)} ({elapsed(nowMs - sinceMs)})
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
              {services.slice(0, 5).map((key) => (
                <Link key={key} href={`/services/${key}`}>
                  {key}
                </Link>
              ))}
              {serviceCount > 5 ? ` and ${serviceCount - 5} more` : ''}
            </dd>
          </div>
        )}
      </dl>
      <details>
        <summary>What it means, and what to do</summary>
        {isLong && <p>{message}</p>}
        <p>{means}</p>
        <p>
          <strong>What to do:</strong> {fix}
        </p>
        {follows.length > 0 && (
          <>
            <p>It follows from this:</p>
            <ul>
              {follows.map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </>
        )}
      </details>
    </li>
  );
}

function Skipped() {
  const skipped = useRows('skipped');
  if (skipped.length === 0) return null;
  const checks = skipped.reduce((sum, { codes }) => sum + codes.length, 0);
  return (
    <details className="skipped">
      <summary>{count(checks, 'check')} could not run here</summary>
      <ul>
        {skipped.map(({ cluster, why, codes }) => (
          <li key={`${cluster} ${why}`}>
            <strong>{cluster}</strong>: {why} ({codes.join(', ')})
          </li>
        ))}
      </ul>
    </details>
  );
}

function RegionStrip() {
  const clusters = useRows('clusters');
  const regions = Map.groupBy(clusters, ({ region }) => region || 'no region');
  if (clusters.length === 0) return null;
  return (
    <section className="regions" aria-label="Clusters by region">
      {[...regions].map(([region, rows]) => (
        <div key={region} className="region">
          <h2>{region}</h2>
          <ul>
            {rows.map((row) => (
              <Tile key={row.id} row={row} />
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}

function Tile({ row }: { readonly row: ClusterRow }) {
  return (
    <li className={`tile tile-${row.standing}`}>
      <Mark standing={row.standing} />
      <span className="tile-name">{row.id}</span>
      <span className="tile-says">{row.says}</span>
      <span className="tile-count">{count(row.services, 'export')}</span>
    </li>
  );
}
