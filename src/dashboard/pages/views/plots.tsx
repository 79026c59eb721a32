// Is it getting slower? Connections, propagation, queries, cache hits and ages of leases of the last hour or day, as the
// dashboard kept them. A table below says the latest figures.

import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useLocation, useSearch } from 'wouter';
import {
  type FiguresView,
  type HistoryLine,
  type HistoryRange,
  type HistoryView,
  type Measure,
  measures,
} from '../../wire/views.ts';
import { useAnswer, useTick } from '../data/hooks.ts';
import { stepsToShow } from '../data/past.ts';
import { clockTime } from '../parts/format.ts';
import { Scroll } from '../parts/scroll.tsx';

const everyMs = 10_000;
/** A page that was just opened shows no axis of an hour that nobody saw. */
const shownMsMin = 300_000;
const linesMax = 12;
const colours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f7f7f'];

const titles: Readonly<Record<Measure, { readonly title: string; readonly unit: string; readonly factor?: number }>> = {
  connections: { title: 'Connections', unit: 'per second, by source cluster' },
  failures: { title: 'Failed connections', unit: 'per second, by source cluster' },
  exportSeconds: { title: 'From an export to its answer', unit: 's' },
  changeSeconds: { title: 'From a change to its answer', unit: 'ms', factor: 1_000 },
  queries: { title: 'Queries', unit: 'per second' },
  cacheShare: { title: 'Cache hits', unit: '% of forwarded queries' },
  leaseAgeSeconds: { title: 'Age of leases', unit: 's' },
};
const ranges: Readonly<Record<HistoryRange, string>> = { hour: 'the last hour', day: 'the last 24 hours' };

export function PlotsView() {
  const [, navigate] = useLocation();
  const range: HistoryRange = new URLSearchParams(useSearch()).get('range') === 'day' ? 'day' : 'hour';
  const tick = useTick(everyMs);
  const figures = useAnswer<FiguresView>('/api/figures', {}, tick);
  return (
    <>
      <h1>Plots</h1>
      <div className="filters">
        <label>
          Time
          <select value={range} onChange={(event) => navigate(`/plots?range=${event.target.value}`)}>
            {Object.entries(ranges).map(([one, name]) => (
              <option key={one} value={one}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {figures.kind === 'failed' && (
        <p className="banner banner-failed" role="alert">
          No new figures: {figures.why}
        </p>
      )}
      <div className="plots">
        {measures.map((measure) => (
          <Plot key={measure} measure={measure} range={range} tick={tick} />
        ))}
      </div>
      {figures.kind === 'answered' ? <Latest figures={figures.value} /> : <p className="nothing">Reading figures</p>}
    </>
  );
}

interface PlotProps {
  readonly measure: Measure;
  readonly range: HistoryRange;
  readonly tick: number;
}

function Plot({ measure, range, tick }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const answer = useAnswer<HistoryView>('/api/history', { measure, range }, tick);
  const view = answer.kind === 'answered' ? answer.value : undefined;
  const lines = view === undefined ? [] : busiest(view.clusters);
  const names = lines.map(({ cluster }) => cluster).join(' ');
  const { title, unit, factor = 1 } = titles[measure];
  const data = view === undefined ? undefined : dataOf(view, lines, factor);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new data goes to the plot that is there.
  useEffect(() => {
    if (box.current === null || names === '' || data === undefined) return;
    plot.current = new uPlot(optionsOf(names.split(' '), box.current.clientWidth), data, box.current);
    return () => plot.current?.destroy();
  }, [names, range, measure]);
  useEffect(() => {
    if (data !== undefined && names !== '') plot.current?.setData(data);
  }, [data, names]);
  return (
    <section className="card" aria-label={`Plot: ${title}`}>
      <h2>
        {title} <span className="small">{unit}</span>
      </h2>
      {names === '' ? (
        <p className="small">{view === undefined ? 'Reading' : emptyText(view, range)}</p>
      ) : (
        <div ref={box} className="plot" />
      )}
      {view !== undefined && lines.length < view.clusters.length && names !== '' ? (
        <p className="small">
          The {lines.length} highest of {view.clusters.length} clusters.
        </p>
      ) : null}
    </section>
  );
}

function emptyText({ hidden }: HistoryView, range: HistoryRange): string {
  const why = hidden.map(({ cluster, why: reason }) => `${cluster}: ${reason}`).join('; ');
  return `Nothing was read in ${ranges[range]}.${why === '' ? '' : ` ${why}.`}`;
}

/** Those with points, by their last one. */
function busiest(lines: readonly HistoryLine[]): readonly HistoryLine[] {
  const lastOf = ({ points }: HistoryLine) => points.findLast((one) => one !== null) ?? 0;
  return lines
    .filter(({ points }) => points.some((one) => one !== null))
    .toSorted((a, b) => lastOf(b) - lastOf(a) || (a.cluster < b.cluster ? -1 : 1))
    .slice(0, linesMax)
    .toSorted((a, b) => (a.cluster < b.cluster ? -1 : 1));
}

function optionsOf(clusters: readonly string[], width: number): uPlot.Options {
  const text = getComputedStyle(document.body).color;
  const axis = { stroke: text, grid: { stroke: '#88888833' }, ticks: { stroke: '#88888855' } };
  const times = {
    ...axis,
    values: (_plot: uPlot, marks: number[]) => marks.map((at) => clockTime(at * 1_000).slice(0, 5)),
  };
  const series = clusters.map((label, index) => ({
    label,
    stroke: colours[index % colours.length] ?? text,
    width: 2,
    dash: index < colours.length ? [] : [6, 4],
    points: { show: false },
    value: (_plot: uPlot, value: number | null) => (value === null ? '' : String(Math.round(value * 100) / 100)),
  }));
  return {
    width: Math.max(260, width),
    height: 190,
    title: '',
    axes: [times, { ...axis, size: 60 }],
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] } },
    series: [{ value: (_plot, at: number | null) => (at === null ? '' : clockTime(at * 1_000)) }, ...series],
    legend: { show: true },
  };
}

/** Data of the range that was asked for, from the first point on. */
function dataOf({ nowMs, stepMs }: HistoryView, lines: readonly HistoryLine[], factor: number): uPlot.AlignedData {
  const all = lines.map(({ points }) => points);
  const count = stepsToShow(all, shownMsMin / stepMs);
  const times = Array.from({ length: count }, (_, index) => (nowMs - (count - 1 - index) * stepMs) / 1_000);
  return [
    times,
    ...all.map((points) => points.slice(points.length - count).map((one) => (one === null ? null : one * factor))),
  ];
}

function Latest({ figures }: { readonly figures: FiguresView }) {
  const text = (value: number | undefined, digits = 0) => (value === undefined ? '?' : value.toFixed(digits));
  return (
    <Scroll label="Latest figures, scrolls">
      <table>
        <caption className="only-read">Latest figures</caption>
        <thead>
          <tr>
            <th scope="col">Cluster</th>
            <th scope="col" className="number">
              Queries since start
            </th>
            <th scope="col" className="number">
              Export to answer, s
            </th>
            <th scope="col" className="number">
              Change to answer, ms
            </th>
            <th scope="col" className="number">
              Cache hits
            </th>
            <th scope="col" className="number">
              Lease age, s
            </th>
            <th scope="col">Resolver</th>
          </tr>
        </thead>
        <tbody>
          {figures.clusters.map((one) => (
            <tr key={one.cluster}>
              <th scope="row">{one.cluster}</th>
              <td className="number">{text(one.queries)}</td>
              <td className="number">{text(one.exportSeconds, 2)}</td>
              <td className="number">
                {text(one.changeSeconds === undefined ? undefined : one.changeSeconds * 1_000, 1)}
              </td>
              <td className="number">{text(one.cacheHits)}</td>
              <td className="number">{text(one.leaseAgeSeconds, 1)}</td>
              <td>{one.why === '' ? 'answers' : one.why}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
