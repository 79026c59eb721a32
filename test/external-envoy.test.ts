// External services through a real Envoy: what the generator emits is accepted.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeWith } from './support/counterparts.ts';
import { validateRandomSets } from './support/external-rule-sets.ts';

describeWith(['envoy'], 'external services, Envoy', () => {
  test('20 random sets of rules -> accepted by envoy --mode validate', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'portolan-envoy-'));
    expect(await validateRandomSets(directory, 1, 20)).toBe('');
  }, 120_000);
});
