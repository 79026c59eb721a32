// The suite, several times, and the report of this release.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { version } from '../../src/base/version.ts';
import { environmentOf, reportText } from './report.ts';
import { runSuite, type SuiteOptions, type SuiteReport, summaryOf } from './suite.ts';

export interface ConformanceOptions extends SuiteOptions {
  readonly times: number;
  /** What was chosen in the clusterset, for the report. */
  readonly policies: string;
  /** Release or commit of the suite, for the report. */
  readonly suiteVersion: string;
  /** Where those of the suite came from, for the report. */
  readonly images: string;
  /** Where the report goes; none if left out. */
  readonly out?: string;
  say(line: string): void;
}

/** Whether every case passed every time. */
export async function runConformance(options: ConformanceOptions): Promise<boolean> {
  const { times, folder, out, say, kubeconfig, contexts } = options;
  const runs: SuiteReport[] = [];
  for (let turn = 1; turn <= times; turn += 1) {
    const report = await runSuite({ ...options, folder: join(folder, `run-${turn}`) });
    say(`run ${turn} of ${times}: ${summaryOf(report)}`);
    runs.push(report);
  }
  if (out !== undefined) {
    mkdirSync(out, { recursive: true });
    const file = join(out, `${version}.md`);
    writeFileSync(file, reportText(runs, { ...options, environment: environmentOf({ kubeconfig, contexts }) }));
    say(`report: ${file}`);
  }
  return runs.every(({ passed, total }) => total > 0 && passed === total);
}
