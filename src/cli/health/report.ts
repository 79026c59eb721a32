// The diagnosis of `portolan doctor` as text and as an exit code. Pure.

import { type Severity, severities } from '../../doctor/codes.ts';
import type { Diagnosis } from '../../doctor/diagnosis.ts';
import { exitCodes } from '../exit-codes.ts';

export function exitOf({ clusters, findings, complete }: Diagnosis, failOn: Severity): number {
  if (clusters.every(({ reached }) => !reached)) return exitCodes.unreachable;
  const bar = severities.indexOf(failOn);
  if (findings.some(({ severity }) => severities.indexOf(severity) >= bar)) return exitCodes.notReady;
  return complete ? 0 : exitCodes.incomplete;
}

export function diagnosisText({ clusters, findings, skipped, complete }: Diagnosis): string[] {
  const names = clusters.map(({ cluster }) => cluster).join(', ');
  return [
    ...findings.flatMap(({ code, severity, cluster, subject, message, since, fix, docs }) => [
      `${code} ${severity} ${cluster} ${subject}: ${message}${since === undefined ? '' : `, since ${since}`}`,
      `        ${fix} (${docs})`,
    ]),
    ...uncheckedLine(skipped),
    findings.length === 0 && complete ? `nothing found in ${names}` : `${findings.length} found in ${names}`,
  ];
}

/** One line, in which each reason stands once: what to run, to give or to look at first is part of the reason. */
function uncheckedLine(skipped: Diagnosis['skipped']): string[] {
  const reasons = [...Map.groupBy(skipped, ({ why }) => why)].map(([why, same]) => {
    const of = (value: (one: (typeof same)[number]) => string) => [...new Set(same.map(value))].join(', ');
    return `${of(({ cluster }) => cluster)}: ${why} (${of(({ code }) => code)})`;
  });
  return reasons.length === 0 ? [] : [`not checked in ${reasons.join('; in ')}`];
}
