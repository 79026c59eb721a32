// Reporting shared by all benchmarks: a table for people, and the same as JSON with `--json FILE`.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The wanted figure in words, and whether this run met it. */
  readonly wanted?: string;
  readonly isMet?: boolean;
  /** A remark on a median, such as its bounds. */
  readonly note?: string;
}

export function report(title: string, figures: readonly Figure[]): void {
  const rows = figures.map((figure) => {
    const { name, wanted, isMet } = figure;
    return [name, formatFigure(figure), wanted === undefined ? '' : `${wanted}: ${isMet ? 'met' : 'MISSED'}`];
  });
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => (row[column] as string).length)));
  console.log(`\n${title}`);
  for (const [name, value, wanted] of rows as [string, string, string][]) {
    console.log(`  ${name.padEnd(widths[0] as number)}  ${value.padStart(widths[1] as number)}  ${wanted}`);
  }
  const file = jsonFile();
  if (file !== undefined) writeFileSync(file, `${JSON.stringify({ title, figures }, null, 2)}\n`);
}

export function formatFigure({ value, unit, note }: Figure): string {
  return `${format(value)} ${unit}${note === undefined ? '' : ` (${note})`}`;
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] as number;
}

function jsonFile(): string | undefined {
  const { values } = parseArgs({ options: { json: { type: 'string' } }, strict: false });
  return typeof values['json'] === 'string' ? values['json'] : undefined;
}

function format(value: number): string {
  if (value >= 1000)
    return Math.round(value)
      .toString()
      .replace(/\B(?=(\d{3})+$)/g, ' ');
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
}
