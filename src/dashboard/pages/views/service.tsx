// One service: what each cluster exports, what comes of it, each conflict with its way out, endpoints, what DNS answers from
// each cluster, and whether traffic is carried.

import { Link, useParams } from 'wouter';
import type { NameView, ServiceInCluster, ServiceView as View } from '../../wire/views.ts';
import { useAnswer, useNowMs, useRow } from '../data/hooks.ts';
import { Conditions } from '../parts/conditions.tsx';
import { ConflictList } from '../parts/conflict-list.tsx';
import { clockTime, count, elapsed } from '../parts/format.ts';
import { HealthBadge, Mark } from '../parts/health.tsx';
import { NameSteps } from '../parts/name-steps.tsx';
import { Scroll } from '../parts/scroll.tsx';
import { ServiceTraffic } from '../parts/service-traffic.tsx';

export function ServiceView() {
  const { namespace = '', name = '' } = useParams();
  const key = `${namespace}/${name}`;
  const row = useRow('services', key);
  const answer = useAnswer<View>('/api/service', { key }, JSON.stringify(row));
  if (answer.kind === 'asking') return <h1>{key}</h1>;
  if (answer.kind === 'failed')
    return (
      <>
        <h1>{key}</h1>
        <p className="banner banner-failed">{answer.why}</p>
      </>
    );
  const view = answer.value;
  return (
    <>
      <p className="crumbs">
        <Link href="/services">Services</Link>
      </p>
      <h1>
        {key} {row === undefined ? null : <HealthBadge health={row.health} text={row.says} />}
      </h1>
      <p className="lead">
        <code>{view.dnsName}</code> <span className="small">as of {clockTime(answer.atMs)}</span>{' '}
        <Link href={`/what-if?service=${key}`}>What if its exports change?</Link>
      </p>
      <ServiceTraffic name={key} />
      <Explanation view={view} />
      <InClusters view={view} />
      <Endpoints clusters={view.clusters} />
      <Dns view={view} />
    </>
  );
}

function Explanation({ view: { explanation, whyNot } }: { readonly view: View }) {
  if (explanation === undefined) return <p className="banner banner-stale">No explanation: {whyNot}.</p>;
  const { type, decider, why, conflicts, fields, ifLeft } = explanation;
  return (
    <section aria-label="Explanation">
      <p>
        {type}, decided by cluster <strong>{decider}</strong>: {why}.{' '}
        {conflicts.length === 0 ? 'All clusters agree.' : `${count(conflicts.length, 'conflict')}:`}
      </p>
      <ConflictList conflicts={conflicts} />
      <details>
        <summary>Field by field, and what changes if a cluster leaves</summary>
        <Scroll label="Fields, scrolls">
          <table>
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">Outcome</th>
                <th scope="col">Each cluster</th>
              </tr>
            </thead>
            <tbody>
              {fields.map(({ field, value, winner, says }) => (
                <tr key={field}>
                  <th scope="row">
                    <code>{field}</code>
                  </th>
                  <td>
                    {value}{' '}
                    <span className="small">{says.every(({ agrees }) => agrees) ? 'all agree' : `of ${winner}`}</span>
                  </td>
                  <td>
                    {says.map(({ cluster, value: said, agrees }) => (
                      <div key={cluster}>
                        <Mark health={agrees ? 'ok' : 'conflict'} /> {cluster}: {said}
                      </div>
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
        <ul>
          {ifLeft.map(({ cluster, changes }) => (
            <li key={cluster}>
              If {cluster} left: {changes.length === 0 ? 'nothing else would change' : changes.join('; ')}
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}

function InClusters({ view }: { readonly view: View }) {
  const nowMs = useNowMs();
  return (
    <section aria-label="In each cluster">
      <h2 className="section">In each cluster</h2>
      <div className="cards">
        {view.clusters.map((one) => (
          <article key={one.cluster} className={`card ${one.isCurrent ? '' : 'old'}`}>
            <h3>{one.cluster}</h3>
            {one.isCurrent ? null : (
              <p className="small">
                As of {one.asOfMs === 0 ? 'never' : clockTime(one.asOfMs)}: its home does not answer.
              </p>
            )}
            {one.denied.length > 0 && <p className="small">You may not see {one.denied.join(', ')} here.</p>}
            <h4>Export</h4>
            {one.export === undefined ? (
              <p className="small">{one.denied.includes('serviceexports') ? 'Not visible to you.' : 'None.'}</p>
            ) : (
              <>
                <p className="small">
                  {one.export.sinceMs === undefined ? '' : `Exported for ${elapsed(nowMs - one.export.sinceMs)}`}
                </p>
                <Conditions conditions={one.export.conditions} />
              </>
            )}
            <h4>Import</h4>
            {one.import === undefined ? (
              <p className="small">{one.denied.includes('serviceimports') ? 'Not visible to you.' : 'None.'}</p>
            ) : (
              <p>
                {one.import.type} <code>{one.import.ips.join(', ')}</code>, {one.import.ports.join(', ')}
                <span className="small">
                  {' '}
                  from {one.import.clusters.join(', ')}
                  {one.import.sinceMs === undefined ? '' : `, ${elapsed(nowMs - one.import.sinceMs)} old`}
                </span>
              </p>
            )}
            <h4>Traffic</h4>
            <p>
              <Mark health={one.traffic.health} /> {one.traffic.says}
            </p>
          </article>
        ))}
      </div>
    </section>
  );
}

function Endpoints({ clusters }: { readonly clusters: readonly ServiceInCluster[] }) {
  const nowMs = useNowMs();
  return (
    <section aria-label="Endpoints">
      <h2 className="section">Endpoints, as each cluster knows them</h2>
      <Scroll label="Endpoints, scrolls">
        <table>
          <thead>
            <tr>
              <th scope="col">Seen in</th>
              <th scope="col">Runs in</th>
              <th scope="col">Address</th>
              <th scope="col">Health</th>
              <th scope="col">Zone</th>
              <th scope="col">Age</th>
            </tr>
          </thead>
          <tbody>
            {clusters.flatMap(({ cluster: seenIn, endpoints, endpointCount, isCurrent }) => [
              ...endpoints.map((one, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: two slices may hold the same endpoint.
                <tr key={`${seenIn} ${index}`} className={isCurrent ? '' : 'old'}>
                  <td>{seenIn}</td>
                  <td>{one.cluster}</td>
                  <td className="mono">
                    {one.address}
                    {one.port === '' ? '' : `:${one.port}`}
                  </td>
                  <td>
                    <HealthBadge health={isCurrent ? one.health : 'stale'} text={one.says} />
                  </td>
                  <td>{one.zone || '–'}</td>
                  <td>{one.sinceMs === undefined ? '?' : elapsed(nowMs - one.sinceMs)}</td>
                </tr>
              )),
              ...(endpointCount > endpoints.length
                ? [
                    <tr key={`${seenIn} more`}>
                      <td>{seenIn}</td>
                      <td colSpan={5}>{endpointCount - endpoints.length} more</td>
                    </tr>,
                  ]
                : []),
            ])}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

function Dns({ view }: { readonly view: View }) {
  return (
    <section aria-label="DNS">
      <h2 className="section">What DNS answers from each cluster</h2>
      <div className="cards">
        {view.clusters.map((one) => (
          <article key={one.cluster} className="card">
            <h3>from {one.cluster}</h3>
            {one.hasResolver ? (
              <FromCluster cluster={one.cluster} name={view.dnsName} />
            ) : (
              <p className="small">No resolver that you may see has reported here.</p>
            )}
          </article>
        ))}
      </div>
    </section>
  );
}

function FromCluster({ cluster, name }: { readonly cluster: string; readonly name: string }) {
  const answer = useAnswer<NameView>('/api/ask', { cluster, name, type: 'A' }, '');
  if (answer.kind === 'asking') return <p className="small">Asking</p>;
  if (answer.kind === 'failed') return <p className="small">No answer: {answer.why}</p>;
  return <NameSteps steps={answer.value.steps} />;
}
