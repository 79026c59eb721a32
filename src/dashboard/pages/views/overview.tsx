// The start page: how it is at a glance, the map of live traffic, and what is wrong by cause, since when and whom it hurts.

import { lazy, Suspense } from 'react';
import { useChoice } from '../data/address.ts';
import { useConnection, useRows } from '../data/hooks.ts';
import { Code } from '../parts/code.tsx';
import { count } from '../parts/format.ts';
import { Mark } from '../parts/health.tsx';
import { Busiest, ChosenOnMap } from '../parts/map-side.tsx';
import { Problems } from '../parts/problems.tsx';
import { Nothing } from '../parts/states.tsx';
import { Totals } from '../parts/totals.tsx';

const TrafficMap = lazy(() => import('../map/map.tsx').then(({ TrafficMap: map }) => ({ default: map })));

export function OverviewView() {
  const problems = useRows('problems');
  return (
    <>
      <h1>{problems.length === 0 ? 'Overview' : `${count(problems.length, 'problem')} now`}</h1>
      <Totals />
      <div className="overview">
        <section aria-label="Map">
          <MapHead />
          <Suspense fallback={<p className="nothing">Drawing the map</p>}>
            <TrafficMap />
          </Suspense>
          <Legend />
          <Busiest />
        </section>
        <div className="overview-side">
          <ChosenOnMap />
          {problems.length === 0 ? <AllWell /> : null}
          <Problems problems={problems} />
          <Skipped />
        </div>
      </div>
    </>
  );
}

/** From the set to a region, a cluster, a service; each step back is a link. */
function MapHead() {
  const { choice, choose } = useChoice();
  const { region, cluster, service } = choice;
  if (region === '' && cluster === '' && service === '') return null;
  return (
    <nav className="path-crumbs map-head" aria-label="Shown on the map">
      <button type="button" className="link" onClick={() => choose({ region: '', cluster: '', service: '' })}>
        All
      </button>
      {region === '' ? null : (
        <>
          <span aria-hidden="true">›</span>
          <button type="button" className="link" onClick={() => choose({ cluster: '', service: '' })}>
            {region}
          </button>
        </>
      )}
      {cluster === '' ? null : <span>› {cluster}</span>}
      {service === '' ? null : <span>› path of {service}</span>}
    </nav>
  );
}

function Legend() {
  const sample = (className: string, width: number) => (
    <svg width="34" height="10" aria-hidden="true">
      <path className={`line ${className}`} strokeWidth={width} d="M2 5 H32" />
    </svg>
  );
  return (
    <p className="legend">
      <span>{sample('line-ok', 2)}some connections</span>
      <span>{sample('line-ok', 6)}many</span>
      <span>{sample('line-conflict', 4)}a few fail</span>
      <span>{sample('line-failed', 4)}over 5 % fail</span>
      <span>{sample('line-gateway', 3)}through a gateway</span>
      <span>{sample('is-idle', 1)}may connect, does not</span>
    </p>
  );
}

function AllWell() {
  const homes = useRows('homes');
  const connection = useConnection();
  const isWhole = connection.kind === 'live' && homes.length > 0 && homes.every(({ state }) => state === 'live');
  if (!isWhole) return <Nothing kinds={['serviceexports']} none="Nothing was found where the dashboard could look." />;
  return (
    <p className="all-well" role="status">
      <Mark health="ok" /> Nothing is wrong in {homes.map(({ name }) => name).join(', ')}.
    </p>
  );
}

function Skipped() {
  const skipped = useRows('skipped');
  if (skipped.length === 0) return null;
  const checks = skipped.reduce((sum, { codes }) => sum + codes.length, 0);
  const reasons = [...Map.groupBy(skipped, ({ why }) => why)];
  return (
    <details className="skipped">
      <summary>{count(checks, 'check')} could not run here</summary>
      <p className="small">
        The dashboard reads what its token may read. portolan doctor with an administrator's kubeconfig runs all of
        them.
      </p>
      <ul>
        {reasons.map(([why, rows]) => (
          <li key={why}>
            <strong>{rows.map(({ cluster }) => cluster).join(', ')}</strong>: {why}{' '}
            {[...new Set(rows.flatMap(({ codes }) => codes))].map((code) => (
              <span key={code}>
                <Code code={code} />{' '}
              </span>
            ))}
          </li>
        ))}
      </ul>
    </details>
  );
}
