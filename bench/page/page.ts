// The page of figures, from what the benches left. Pure.

import { type Figure, formatFigure } from '../report.ts';
import { type Bench, benches } from './benches.ts';
import { drawPlot } from './plots.ts';
import { breaks, opening } from './words.ts';

/** One run of a bench, as it is kept. */
export interface Result {
  readonly at: string;
  readonly commit: string;
  readonly machine: string;
  /** Processes that wanted a core in the minute before: above the number of cores, times say little. */
  readonly load: number;
  readonly figures: readonly Figure[];
}

export interface Page {
  readonly text: string;
  /** By file name. */
  readonly plots: ReadonlyMap<string, string>;
}

export function drawPage(results: ReadonlyMap<string, Result>): Page {
  const plots = new Map<string, string>();
  const sections = benches.map((bench) => section(bench, results.get(bench.name), plots));
  return { text: `${[opening, ...sections, breaks].join('\n\n')}\n`, plots };
}

function section(bench: Bench, result: Result | undefined, plots: Map<string, string>): string {
  const head = [`## ${bench.title}`, bench.about];
  if (result === undefined) return [...head, `Not measured yet: \`${commandOf(bench)}\``].join('\n\n');
  const pictures = bench.plots.flatMap((plot) => {
    const svg = drawPlot(plot, result.figures);
    if (svg === undefined) return [];
    const file = `scale-${plot.name}.svg`;
    plots.set(file, svg);
    return [`![${plot.title}](images/${file})`];
  });
  const missed = result.figures.filter(({ isMet }) => isMet === false).length;
  const verdict = missed === 0 ? '' : ` **${missed} of the wanted figures ${missed === 1 ? 'is' : 'are'} missed.**`;
  const made = `\`${commandOf(bench)}\`, ${result.at.slice(0, 10)}, ${result.commit}, ${result.machine}, load before ${result.load.toFixed(1)}.${verdict}`;
  return [...head, ...pictures, tableOf(result.figures), made].join('\n\n');
}

function tableOf(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const { name, wanted, isMet } = figure;
    const judged = wanted === undefined ? '' : `${wanted}: ${isMet ? 'met' : '**missed**'}`;
    return `| ${cell(name)} | ${cell(formatFigure(figure))} | ${judged} |`;
  });
  return ['| | | wanted |', '| --- | --: | --- |', ...rows].join('\n');
}

function cell(words: string): string {
  return words.trim().replaceAll('|', '\\|');
}

export function commandOf({ name, args }: Bench): string {
  return `npm run bench:${name}${args.length === 0 ? '' : ` -- ${args.join(' ')}`}`;
}
