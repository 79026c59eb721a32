// Beside the map: what is chosen on it, a cluster with its services and their traffic, or the busiest services of all.

import { Link } from 'wouter';
import type { ClusterRow, RateRow } from '../../wire/rows.ts';
import type { TrafficView } from '../../wire/views.ts';
import { useChoice } from '../data/address.ts';
import { useAnswer, useRow, useRows, useTick } from '../data/hooks.ts';
import { DemoButtons } from './demo-buttons.tsx';
import { count, perSecond } from './format.ts';
import { HealthBadge, Mark } from './health.tsx';

const busiestMax = 8;
const rowsShownMax = 12;
const trafficEveryMs = 2_000;

export function ChosenOnMap() {
  const { choice } = useChoice();
  const row = useRow('clusters', choice.cluster);
  return row === undefined ? null : <ChosenCluster row={row} />;
}

export function Busiest() {
  const { choice, choose } = useChoice();
  const traffic = useRows('traffic');
  const sums = new Map<string, RateRow>();
  for (const { services } of traffic)
    for (const { id, perSecond: rate, failedPerSecond } of services) {
      const old = sums.get(id);
      sums.set(id, {
        id,
        perSecond: (old?.perSecond ?? 0) + rate,
        failedPerSecond: (old?.failedPerSecond ?? 0) + failedPerSecond,
      });
    }
  const rows = [...sums.values()].sort((a, b) => b.perSecond - a.perSecond || (a.id < b.id ? -1 : 1));
  const missing = traffic.filter(({ why }) => why !== '');
  return (
    <section className="card" aria-label="Busiest services">
      <h2>Busiest services</h2>
      {rows.length === 0 ? (
        <p className="small">
          No connection in the last seconds. A client of a service shows here as soon as it connects.
        </p>
      ) : (
        <ul className="rates">
          {rows.slice(0, busiestMax).map((row) => (
            <li key={row.id}>
              <button
                type="button"
                className="link"
                aria-pressed={choice.service === row.id}
                title="Show its path on the map"
                onClick={() => choose({ cluster: '', service: choice.service === row.id ? '' : row.id })}
              >
                {row.id}
              </button>
              <Rate row={row} />
            </li>
          ))}
        </ul>
      )}
      {choice.service === '' ? null : (
        <p>
          <Link href={`/services/${choice.service}`}>Open {choice.service}</Link>
        </p>
      )}
      {missing.length === 0 ? null : (
        <details>
          <summary>{count(missing.length, 'cluster')} without traffic figures</summary>
          <ul>
            {missing.map(({ id, why }) => (
              <li key={id} className="small">
                <strong>{id}</strong>: {why}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function Rate({ row }: { readonly row: Pick<RateRow, 'perSecond' | 'failedPerSecond'> }) {
  return (
    <span>
      {perSecond(row.perSecond)}
      {row.failedPerSecond > 0 ? <span className="spot-failed"> {perSecond(row.failedPerSecond)} fail</span> : null}
    </span>
  );
}

function ChosenCluster({ row }: { readonly row: ClusterRow }) {
  const { choose } = useChoice();
  const into = useRows('clusters').filter(({ exportsTo }) => exportsTo.includes(row.id));
  return (
    <aside className="card" aria-label="Chosen cluster">
      <h2>{row.id}</h2>
      <p>
        <HealthBadge health={row.health} /> <span className="small">{row.says}</span>
      </p>
      <dl className="facts facts-column">
        <div>
          <dt>Region, zone</dt>
          <dd>
            {row.region || '–'} {row.zone}
          </dd>
        </div>
        <div>
          <dt>Exports</dt>
          <dd>
            {count(row.services, 'service')}, {count(row.ready, 'ready endpoint')}
          </dd>
        </div>
        <div>
          <dt>Exports to</dt>
          <dd>{row.exportsTo.join(', ') || 'nobody'}</dd>
        </div>
        <div>
          <dt>Imports from</dt>
          <dd>{into.map(({ id }) => id).join(', ') || 'nobody'}</dd>
        </div>
        {row.reaches === undefined ? null : (
          <div>
            <dt>Reaches</dt>
            <dd>
              <ul className="part-list">
                {row.reaches.map(({ cluster, text, isWell }) => (
                  <li key={cluster}>
                    <Mark health={isWell ? 'ok' : 'failed'} /> {cluster} <span className="small">{text}</span>
                  </li>
                ))}
              </ul>
            </dd>
          </div>
        )}
      </dl>
      <ServicesOf cluster={row.id} />
      <DemoButtons cluster={row.id} />
      <button type="button" className="quiet" onClick={() => choose({ cluster: '' })}>
        Show all
      </button>
    </aside>
  );
}

/** What it offers, and what its clients use: the cluster opened to its services. */
function ServicesOf({ cluster }: { readonly cluster: string }) {
  const { choose } = useChoice();
  const exported = useRows('services').filter(({ exporters }) => exporters.some((one) => one.cluster === cluster));
  const tick = useTick(trafficEveryMs);
  const used = useAnswer<TrafficView>('/api/traffic', { cluster }, tick);
  const served = useAnswer<TrafficView>('/api/traffic', { to: cluster }, tick);
  const rateOf = (key: string) =>
    sumOf(served.kind === 'answered' ? served.value.rows.filter(({ service }) => service === key) : []);
  const rows = exported
    .map((row) => ({ row, rate: rateOf(row.key) }))
    .sort((a, b) => b.rate.perSecond - a.rate.perSecond);
  return (
    <>
      <h3>Its services, and who connects to them</h3>
      <ul className="rates">
        {rows.slice(0, rowsShownMax).map(({ row, rate }) => (
          <li key={row.key}>
            <span>
              <Mark health={row.health} />{' '}
              <button type="button" className="link" onClick={() => choose({ cluster: '', service: row.key })}>
                {row.key}
              </button>
            </span>
            <Rate row={rate} />
          </li>
        ))}
      </ul>
      {rows.length > rowsShownMax ? (
        <p>
          <Link href={`/services?cluster=${encodeURIComponent(cluster)}`}>All {rows.length}</Link>
        </p>
      ) : null}
      <h3>Its clients connect to</h3>
      {used.kind !== 'answered' || used.value.rows.length === 0 ? (
        <p className="small">
          {used.kind === 'answered'
            ? (used.value.missing.find((one) => one.cluster === cluster)?.why ?? 'nothing yet')
            : 'Reading'}
        </p>
      ) : (
        <ul className="rates">
          {used.value.rows.slice(0, rowsShownMax).map((row) => (
            <li key={`${row.service} ${row.to}`}>
              <span>
                <Link href={`/services/${row.service}`}>{row.service}</Link>{' '}
                <span className="small">in {row.to || '?'}</span>
              </span>
              <Rate row={row} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function sumOf(rows: readonly Pick<RateRow, 'perSecond' | 'failedPerSecond'>[]) {
  const sum = (column: 'perSecond' | 'failedPerSecond') => rows.reduce((total, row) => total + row[column], 0);
  return { perSecond: sum('perSecond'), failedPerSecond: sum('failedPerSecond') };
}
