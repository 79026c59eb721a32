// Every alert names its runbook by a path that leads to one.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const root = new URL('../../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

interface Rule {
  readonly alert: string;
  readonly annotations: Readonly<Record<string, string>>;
}

test.each<[string, (file: { groups?: unknown; spec?: { groups: unknown } }) => unknown]>([
  ['deploy/monitoring/rules.yaml', ({ groups }) => groups],
  ['deploy/monitoring/alerts.yaml', ({ spec }) => spec?.groups],
])('%s: every alert -> its runbook exists, and no address is made up', (path, groupsOf) => {
  const rules = (groupsOf(parse(read(path))) as { rules: Rule[] }[]).flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(10);
  for (const { alert, annotations } of rules) {
    const [file = '', anchor] = annotations['runbook']!.split('#');
    const headings = [...read(file).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading!.toLowerCase());
    expect([alert, headings.includes(anchor!)]).toEqual([alert, true]);
  }
  expect(read(path)).not.toMatch(/https?:/);
});
