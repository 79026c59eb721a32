// Lines over a number of something, as SVG that is readable in light and dark. Pure.

import type { Figure } from '../report.ts';

export interface Plot {
  /** Of its file. */
  readonly name: string;
  readonly title: string;
  readonly x: string;
  readonly unit: string;
  /** The first group of a figure's pattern is its place on the x axis. */
  readonly series: readonly { readonly label: string; readonly figure: RegExp }[];
}

interface Point {
  readonly x: number;
  readonly y: number;
}

const size = { width: 560, height: 280, left: 64, right: 120, top: 36, bottom: 48 };
const colours = ['#2f6fde', '#c2571a', '#2c8a4b', '#8b46b5'];
/** From here on a scale of tens shows more than a plain one. */
const wideRange = 20;

/** Undefined if no series has two points: there is no line to draw. */
export function drawPlot(plot: Plot, figures: readonly Figure[]): string | undefined {
  const lines = plot.series.map(({ label, figure }) => ({ label, points: pointsOf(figures, figure) }));
  if (lines.every(({ points }) => points.length < 2)) return undefined;
  const all = lines.flatMap(({ points }) => points);
  const across = scaleOf(
    all.map(({ x }) => x),
    [size.left, size.width - size.right],
  );
  const top = niceCeiling(Math.max(...all.map(({ y }) => y)));
  const yOf = (y: number) => size.height - size.bottom - (y / top) * (size.height - size.bottom - size.top);
  const parts = [
    ...[0, 0.25, 0.5, 0.75, 1].flatMap((share) => gridLine(yOf(share * top), number(share * top))),
    ...[...new Set(all.map(({ x }) => x))].map((x) =>
      text(across(x), size.height - size.bottom + 18, number(x), 'middle'),
    ),
    text((size.left + size.width - size.right) / 2, size.height - 8, plot.x, 'middle'),
    text(size.left - 48, 18, `${plot.title} (${plot.unit})`, 'start', ' class="title"'),
    ...lines.flatMap(({ label, points }, at) =>
      drawLine(
        label,
        points.map(({ x, y }) => [across(x), yOf(y)]),
        at,
      ),
    ),
  ];
  return `${frame(plot)}\n${parts.join('\n')}\n</svg>\n`;
}

function pointsOf(figures: readonly Figure[], pattern: RegExp): Point[] {
  const points = figures.flatMap(({ name, value }) => {
    const x = pattern.exec(name)?.[1];
    return x === undefined || !Number.isFinite(value) ? [] : [{ x: Number(x), y: value }];
  });
  return points.sort((a, b) => a.x - b.x);
}

function scaleOf(values: readonly number[], [from, to]: readonly [number, number]): (value: number) => number {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const of = most / least > wideRange ? Math.log10 : (value: number) => value;
  const span = of(most) - of(least) || 1;
  return (value) => from + ((of(value) - of(least)) / span) * (to - from);
}

function drawLine(label: string, points: readonly (readonly number[])[], at: number): string[] {
  const colour = colours[at % colours.length]!;
  if (points.length === 0) return [];
  const path = points.map(([x, y]) => `${x!.toFixed(1)},${y!.toFixed(1)}`);
  const [lastX, lastY] = points.at(-1)! as [number, number];
  return [
    `<polyline points="${path.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...points.map(([x, y]) => `<circle cx="${x!.toFixed(1)}" cy="${y!.toFixed(1)}" r="3" fill="${colour}"/>`),
    text(lastX + 8, lastY + 4, label, 'start', ` style="fill:${colour}"`),
  ];
}

function gridLine(y: number, label: string): string[] {
  const right = size.width - size.right;
  return [
    `<line x1="${size.left}" x2="${right}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" class="grid"/>`,
    text(size.left - 8, y + 4, label, 'end'),
  ];
}

function text(x: number, y: number, words: string, anchor: string, more = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"${more}>${words}</text>`;
}

function frame({ title }: Plot): string {
  const { width, height } = size;
  const style = [
    'text{font:12px system-ui,sans-serif;fill:#444}',
    '.title{font-weight:600;fill:#111}',
    '.grid{stroke:#8884}',
    '@media(prefers-color-scheme:dark){text{fill:#bbb}.title{fill:#eee}}',
  ].join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}"><style>${style}</style>`;
}

/** The next of 1, 2, 2.5, 4, 5 or 10 times a power of ten, so that quarters are round. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 2.5, 4, 5, 10].map((step) => step * power).find((step) => step >= value) ?? 10 * power;
}

function number(value: number): string {
  if (value >= 100_000) return `${Math.round(value / 1000).toLocaleString('en')}k`;
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString('en') : value.toPrecision(2);
}
