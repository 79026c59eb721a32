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
  const silent = new Map<string, Set<string>>();
  for (const { code, cluster, why } of skipped) {
    const key = `${cluster}: ${why}`;
    silent.set(key, (silent.get(key) ?? new Set()).add(code));
  }
  const names = clusters.map(({ cluster }) => cluster).join(', ');
  return [
    ...findings.flatMap(({ code, severity, cluster, subject, message, since, fix, docs }) => [
      `${code} ${severity} ${cluster} ${subject}: ${message}${since === undefined ? '' : `, since ${since}`}`,
      `        ${fix} (${docs})`,
    ]),
    ...[...silent].map(([key, list]) => `not checked in ${key} (${[...list].join(', ')})`),
    findings.length === 0 && complete ? `nothing found in ${names}` : `${findings.length} found in ${names}`,
  ];
}
