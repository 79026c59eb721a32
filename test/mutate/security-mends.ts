// For each test that the threat model names: the text that is the mend, and what it becomes when it is switched off. A test that
// holds several rows stands once.

import type { Mend } from './mend.ts';
import { baseMends } from './mends/base.ts';
import { clustersetMends } from './mends/clusterset.ts';
import { dataPlanesMends } from './mends/data-planes.ts';
import { homeMends } from './mends/home.ts';
import { peeringMends } from './mends/peering.ts';
import { toolsMends } from './mends/tools.ts';
import { xdsMends } from './mends/xds.ts';

export const mends: readonly Mend[] = [
  ...baseMends,
  ...clustersetMends,
  ...dataPlanesMends,
  ...homeMends,
  ...peeringMends,
  ...toolsMends,
  ...xdsMends,
];

/** Tests that are not run without their mend, and why. */
export const unswitched: Readonly<Record<string, string>> = {
  'test/kubernetes/admin.test.ts': 'needs API servers of Kubernetes',
  'test/kubernetes/rights.test.ts': 'needs API servers of Kubernetes',
  'test/demo-reports.test.ts': 'needs a whole demo for each run',
  'test/dashboard.test.ts': 'the rights are those of the home: its mends are switched off in the rows on roles',
};

/** Titles of the same kind. */
export const unswitchedTitles: Readonly<Record<string, string>> = {
  'trust: a root of A is given out twice, in the lists of A and B -> each vouches only for its own domain':
    'two checks hold it, one behind the other, and either is enough',
  'hostile: strategic patches on long lists, several at once -> health checks are answered in between':
    'many places let others take turns; a single one makes no difference that a test could see',
};
