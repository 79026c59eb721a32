// Five totals: how large the set is, how well it is, and how much flows, with the last hour.

import type { HistoryView } from '../../wire/views.ts';
import { useAnswer, useRows, useTick } from '../data/hooks.ts';
import { stepsToShow, sumOfLines } from '../data/past.ts';
import { perSecond } from './format.ts';
import { Spark } from './spark.tsx';

const pastEveryMs = 10_000;
/** Five minutes. */
const stepsMin = 30;

export function Totals() {
  const [clusters, services, traffic] = [useRows('clusters'), useRows('services'), useRows('traffic')];
  const alive = clusters.filter(({ health }) => health === 'ok').length;
  const healthy = services.filter(({ health }) => health === 'ok').length;
  const sum = (column: 'perSecond' | 'failedPerSecond') => traffic.reduce((total, row) => total + row[column], 0);
  const unread = traffic.filter(({ why }) => why !== '').length;
  const isRead = traffic.length > unread;
  const note = !isRead
    ? 'no proxy was read'
    : unread === 0
      ? 'all clusters'
      : `${unread} of ${traffic.length} clusters not read`;
  const failed = sum('failedPerSecond');
  return (
    <dl className="totals" aria-label="Totals">
      <Total name="Clusters" figure={String(clusters.length)} note={`${alive} alive`} isBad={alive < clusters.length} />
      <Total name="Services" figure={String(services.length)} note={`${services.length - healthy} need a look`} />
      <Total
        name="Healthy services"
        figure={services.length === 0 ? '–' : `${shareOf(healthy, services.length)} %`}
        note={`${healthy} of ${services.length}`}
      />
      <Total name="Connections" figure={isRead ? perSecond(rounded(sum('perSecond'))) : '?'} note={note}>
        <Past measure="connections" />
      </Total>
      <Total name="Failures" figure={isRead ? perSecond(rounded(failed)) : '?'} note={note} isBad={failed > 0}>
        <Past measure="failures" />
      </Total>
    </dl>
  );
}

/** Never 100 while one is not well. */
function shareOf(part: number, whole: number): number {
  return part === whole ? 100 : Math.min(99, Math.round((100 * part) / whole));
}

function rounded(rate: number): number {
  return rate >= 10 ? Math.round(rate) : Math.round(rate * 10) / 10;
}

interface TotalProps {
  readonly name: string;
  readonly figure: string;
  readonly note: string;
  readonly isBad?: boolean;
  readonly children?: React.ReactNode;
}

function Total({ name, figure, note, isBad = false, children }: TotalProps) {
  return (
    <div className={`total-card ${isBad ? 'figure-failed' : ''}`}>
      <dt>{name}</dt>
      <dd className="figure">{figure}</dd>
      {children === undefined ? null : <dd>{children}</dd>}
      <dd className="small">{note}</dd>
    </div>
  );
}

function Past({ measure }: { readonly measure: 'connections' | 'failures' }) {
  const answer = useAnswer<HistoryView>('/api/history', { measure, range: 'hour' }, useTick(pastEveryMs));
  if (answer.kind !== 'answered') return null;
  const points = sumOfLines(answer.value.clusters);
  const shown = points.slice(points.length - stepsToShow([points], stepsMin));
  return <Spark points={shown} label={`${measure} in the last hour`} />;
}
