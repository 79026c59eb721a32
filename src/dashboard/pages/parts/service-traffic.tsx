// The connections of one service: from which cluster to which, with what outcome, and what was seen of each endpoint lately.

import { Link } from 'wouter';
import type { FlowRow, FlowsView, TrafficView } from '../../wire/views.ts';
import { useAnswer, useTick } from '../data/hooks.ts';
import { bytes, perSecond } from './format.ts';
import { Mark } from './health.tsx';
import { Scroll } from './scroll.tsx';

const everyMs = 2_000;

export function ServiceTraffic({ name }: { readonly name: string }) {
  const tick = useTick(everyMs);
  const answer = useAnswer<TrafficView>('/api/traffic', { key: name }, tick);
  const flows = useAnswer<FlowsView>('/api/flows', { service: `${name}:` }, tick);
  if (answer.kind !== 'answered') return null;
  const { rows, missing } = answer.value;
  return (
    <section aria-label="Traffic">
      <h2 className="section">Traffic, by source cluster and outcome</h2>
      {rows.length === 0 ? (
        <p className="nothing">No connection was counted since the proxies were started.</p>
      ) : (
        <Sums rows={rows} />
      )}
      {missing.length === 0 ? null : (
        <p className="small">Not counted: {missing.map(({ cluster, why }) => `${cluster} (${why})`).join('; ')}.</p>
      )}
      {flows.kind === 'answered' && flows.value.flows.length > 0 ? <Seen flows={flows.value.flows} /> : null}
      <p>
        <Link href={`/flows?service=${encodeURIComponent(`${name}:`)}`}>Its single connections</Link>
      </p>
    </section>
  );
}

function Sums({ rows }: { readonly rows: TrafficView['rows'] }) {
  return (
    <Scroll label="Traffic, scrolls">
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">To</th>
            {['Now', 'Failing now', 'Connections', 'Answered', 'Refused', 'No answer', 'Reset', 'Sent', 'Received'].map(
              (one) => (
                <th key={one} scope="col" className="number">
                  {one}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.from} ${row.to}`}>
              <th scope="row">{row.from}</th>
              <td>
                <Mark health={row.failedPerSecond > 0 ? 'failed' : 'ok'} /> {row.to || '?'}
              </td>
              <td className="number">{perSecond(row.perSecond)}</td>
              <td className="number">{perSecond(row.failedPerSecond)}</td>
              {[
                row.tried,
                row.answered,
                row.refused,
                Math.max(0, row.tried - row.answered - row.refused),
                row.reset,
              ].map((value, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns are fixed.
                <td key={index} className="number">
                  {value}
                </td>
              ))}
              <td className="number">{bytes(row.sent)}</td>
              <td className="number">{bytes(row.received)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** Made from a sample, so shares and times only. */
function Seen({ flows }: { readonly flows: readonly FlowRow[] }) {
  const last = new Map(flows.toReversed().map((flow) => [flow.id, flow]));
  const groups = [...Map.groupBy(last.values(), ({ to, endpoint }) => `${to} ${endpoint}`)].sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  return (
    <>
      <h3>Endpoints, as seen by the last recorded connections</h3>
      <ul className="rates">
        {groups.map(([key, group]) => {
          const failed = group.filter(({ outcome }) => outcome !== 'answered').length;
          const times = group.flatMap(({ answeredAfterMs }) => answeredAfterMs ?? []).sort((a, b) => a - b);
          const median = times[Math.floor(times.length / 2)];
          return (
            <li key={key}>
              <span>
                <Mark health={failed === 0 ? 'ok' : failed === group.length ? 'failed' : 'limited'} />{' '}
                <code>{group[0]!.endpoint}</code> <span className="small">in {group[0]!.to || '?'}</span>
              </span>
              <span>
                {group.length - failed} of {group.length} answered
                {median === undefined ? '' : `, half within ${median.toFixed(1)} ms`}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}
