// Is it getting slower? Propagation, queries, cache hits, and ages of leases, since this page was
// opened. A table below says the latest figures.

import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ClusterFigures, FiguresView } from '../../wire/views.ts';
import { useLive } from '../data/hooks.ts';
import { Scroll } from '../parts/scroll.tsx';

const everyMs = 5_000;
/** An hour. */
const pointsMax = 720;
const colours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f7f7f'];

interface Measure {
  readonly title: string;
  readonly unit: string;
  readonly of: (now: ClusterFigures, before: ClusterFigures | undefined, seconds: number) => number | null;
}

const measures: readonly Measure[] = [
  {
    title: 'From an export to its answer',
    unit: 's',
    of: ({ exportSeconds }) => exportSeconds ?? null,
  },
  {
    title: 'From a change to its answer',
    unit: 'ms',
    of: ({ changeSeconds }) => (changeSeconds === undefined ? null : changeSeconds * 1_000),
  },
  { title: 'Queries', unit: 'per second', of: (now, before, seconds) => rate(now.queries, before?.queries, seconds) },
  {
    title: 'Cache hits',
    unit: '% of forwarded queries',
    of: ({ cacheHits, cacheMisses }) => share(cacheHits, cacheMisses),
  },
  { title: 'Age of leases', unit: 's', of: ({ leaseAgeSeconds }) => leaseAgeSeconds ?? null },
];

/** Kept while other views are shown. */
const history: FiguresView[] = [];

export function PlotsView() {
  const live = useLive();
  const [version, setVersion] = useState(0);
  const [why, setWhy] = useState('');
  useEffect(() => {
    const read = () =>
      live.ask<FiguresView>('/api/figures', {}).then(
        (figures) => {
          history.push(figures);
          history.splice(0, history.length - pointsMax);
          setWhy('');
          setVersion((one) => one + 1);
        },
        (error: Error) => setWhy(error.message),
      );
    read();
    const timer = setInterval(read, everyMs);
    return () => clearInterval(timer);
  }, [live]);
  const last = history.at(-1);
  return (
    <>
      <h1>Plots</h1>
      {why !== '' && (
        <p className="banner banner-failed" role="alert">
          No new figures: {why}
        </p>
      )}
      <div className="plots">
        {measures.map((measure) => (
          <Plot key={measure.title} measure={measure} version={version} />
        ))}
      </div>
      {last === undefined ? <p className="nothing">Reading figures</p> : <Latest figures={last} />}
    </>
  );
}

function Plot({ measure, version }: { readonly measure: Measure; readonly version: number }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const clusters = history.at(-1)?.clusters.map(({ cluster }) => cluster) ?? [];
  const names = clusters.join(' ');
  useEffect(() => {
    if (box.current === null || names === '') return;
    plot.current = new uPlot(optionsOf(names.split(' '), box.current.clientWidth), dataOf(measure), box.current);
    return () => plot.current?.destroy();
  }, [names, measure]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version is new data.
  useEffect(() => plot.current?.setData(dataOf(measure)), [version, measure]);
  return (
    <section className="card" aria-label={`Plot: ${measure.title}`}>
      <h2>
        {measure.title} <span className="small">{measure.unit}</span>
      </h2>
      <div ref={box} className="plot" />
    </section>
  );
}

function optionsOf(clusters: readonly string[], width: number): uPlot.Options {
  const text = getComputedStyle(document.body).color;
  const axis = { stroke: text, grid: { stroke: '#88888833' }, ticks: { stroke: '#88888855' } };
  const series = clusters.map((label, index) => ({
    label,
    stroke: colours[index % colours.length] ?? text,
    width: 2,
    dash: index < colours.length ? [] : [6, 4],
    points: { show: false },
  }));
  return {
    width: Math.max(260, width),
    height: 190,
    title: '',
    axes: [axis, { ...axis, size: 60 }],
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] } },
    series: [{}, ...series],
    legend: { show: clusters.length <= 12 },
    cursor: { show: clusters.length <= 12 },
  };
}

function dataOf({ of }: Measure): uPlot.AlignedData {
  const clusters = history.at(-1)?.clusters.map(({ cluster }) => cluster) ?? [];
  const times = history.map(({ atMs }) => atMs / 1_000);
  const lines = clusters.map((cluster) =>
    history.map((figures, index) => {
      const now = figures.clusters.find((one) => one.cluster === cluster);
      const earlier = history[index - 1];
      const before = earlier?.clusters.find((one) => one.cluster === cluster);
      const seconds = earlier === undefined ? 0 : (figures.atMs - earlier.atMs) / 1_000;
      return now === undefined ? null : of(now, before, seconds);
    }),
  );
  return [times, ...lines];
}

function rate(now: number | undefined, before: number | undefined, seconds: number): number | null {
  if (now === undefined || before === undefined || seconds <= 0) return null;
  return Math.max(0, now - before) / seconds;
}

function share(hits: number | undefined, misses: number | undefined): number | null {
  const all = (hits ?? 0) + (misses ?? 0);
  return hits === undefined || all === 0 ? null : (100 * hits) / all;
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
