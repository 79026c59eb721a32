// `npm run external:cases [-- SEED]`: 100,000 random connections by the model of Envoy, then 500 random sets of rules by a
// real one. The tests run a few of both.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findDisagreement } from '../../src/xds/external/testing/agreement.ts';
import { randomOf } from '../../src/xds/external/testing/random-rules.ts';
import { validateRandomSets } from '../support/external-rule-sets.ts';

const seed = Number(process.argv[2] ?? 1);
const startMs = performance.now();
const seconds = () => ((performance.now() - startMs) / 1000).toFixed(1);
const disagreement = findDisagreement(randomOf(seed), 100_000);
console.log(`100,000 connections: ${disagreement ?? 'Envoy picks what the rules say'} (${seconds()} s)`);
const refused = await validateRandomSets(mkdtempSync(join(tmpdir(), 'portolan-envoy-')), seed, 500);
console.log(
  `500 sets of rules: ${refused === '' ? 'all accepted by envoy --mode validate' : refused} (${seconds()} s)`,
);
process.exitCode = disagreement === undefined && refused === '' ? 0 : 1;
