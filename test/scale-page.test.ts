// docs/scale.md and its plots are what the benches left, drawn again.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { benches } from '../bench/page/benches.ts';
import { drawPage, type Result } from '../bench/page/page.ts';
import { drawPlot } from '../bench/page/plots.ts';
import { readResults } from '../bench/page/results.ts';

const docs = fileURLToPath(new URL('../docs/', import.meta.url));
const result = (figures: Result['figures']): Result => ({
  at: '2026-01-02T03:04:05Z',
  commit: 'abcdef01',
  machine: '2 cores',
  load: 0.1,
  figures,
});

describe('the page of figures', () => {
  test('what was kept -> the page and the plots in docs, byte for byte', () => {
    const { text, plots } = drawPage(readResults());
    expect(readFileSync(`${docs}scale.md`, 'utf8')).toBe(text);
    for (const [name, svg] of plots) expect(readFileSync(`${docs}images/${name}`, 'utf8'), name).toBe(svg);
  });

  test('each bench -> its script is there, and its command is a script of the package', () => {
    const { scripts } = JSON.parse(readFileSync(`${docs}../package.json`, 'utf8'));
    for (const { name, script } of benches) expect(scripts[`bench:${name}`]).toContain(script);
  });

  test('a bench that was not run -> said, with its command', () => {
    expect(drawPage(new Map()).text).toContain('Not measured yet: `npm run bench:scale`');
  });

  test('a wanted figure that is missed -> said in its row and under the table', () => {
    const missed = { name: 'joined', value: 30, unit: 's', wanted: 'under 20 s', isMet: false };
    const { text } = drawPage(new Map([['scale', result([missed])]]));
    expect(text).toContain('| joined | 30.0 s | under 20 s: **missed** |');
    expect(text).toContain('**1 of the wanted figures is missed.**');
  });

  test('a plot -> a line through every figure of its series, and none through what is no number', () => {
    const plot = {
      name: 'p',
      title: 'Memory',
      x: 'services',
      unit: 'MB',
      series: [{ label: 'agent', figure: /^(\d+): a$/ }],
    };
    const figure = (name: string, value: number) => ({ name, value, unit: 'MB' });
    const svg = drawPlot(plot, [
      figure('10: a', 1),
      figure('1000: a', 4),
      figure('100: a', Number.NaN),
      figure('x', 9),
    ])!;
    const [, points] = /points="([^"]+)"/.exec(svg)!;
    expect(points!.split(' ')).toEqual(
      ['64.0,173.5', '440.0,36.0'].map((at) => expect.stringMatching(at.split(',')[0]!)),
    );
    expect(svg).not.toContain('NaN');
    expect(drawPlot(plot, [figure('10: a', 1)])).toBeUndefined();
  });
});
