// The conformance suite of the Multi-Cluster Services API on the two clusters.

import { join } from 'node:path';
import { type ConformanceOptions, runConformance } from '../conformance/run.ts';
import type { Act } from './acts.ts';

const images = 'made of Debian packages of this machine, under the names that the suite asks for';

export function conformanceAct(
  options: Pick<ConformanceOptions, 'suite' | 'suiteVersion' | 'times' | 'policies' | 'out'>,
): Act {
  return {
    name: 'conformance suite of the Multi-Cluster Services API',
    run: async ({ folder, kubeconfig, say }) => {
      const common = { kubeconfig, contexts: ['east', 'west'], folder: join(folder, 'conformance'), say };
      if (!(await runConformance({ ...options, ...common, images }))) throw new Error('not every case passed');
      return `all passed, ${options.times} time(s)`;
    },
  };
}
