// Every metric that a source file describes in literals keeps to the conventions: a part whose metric breaks one would not
// start.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { conventionProblem, type DescribedMetric } from '../base/metrics.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const files = (readdirSync(root, { recursive: true }) as string[]).filter((file) => /(?<!\.test)\.ts$/.test(file));

/** `metrics.gauge({ name: '…', help: '…'`, with whatever stands between them. */
const literal = /\.(counter|gauge|histogram)\(\{\s*(?:type: '\w+',\s*)?name: '([a-z0-9_]+)',\s*help: '([^']*)'/g;
/** `gauge('name', 'help'` of helpers that a file has for many metrics alike. */
const short = /\b(gauge|labelled|add)\(\s*'([a-z0-9_]+)',\s*'([^']*)'/g;

const described = files.flatMap((file) => {
  const text = readFileSync(join(root, file), 'utf8');
  const found = [...text.matchAll(literal)].map(([, type, name, help]) => ({ file, type, name, help }));
  // Helpers that add counters say so in the name.
  const helped = text.includes('metrics.')
    ? [...text.matchAll(short)].map(([, , name, help]) => ({
        ...{ file, name, help },
        type: name!.endsWith('_total') ? 'counter' : 'gauge',
      }))
    : [];
  return [...found, ...helped] as ({ file: string } & DescribedMetric)[];
});

test('metrics: those of all parts are found', () => {
  expect(described.length).toBeGreaterThan(60);
});

test.each(described)('metrics: $file: $name -> keeps to the conventions', ({ type, name, help }) => {
  expect(conventionProblem({ type, name, help })).toBeUndefined();
});
