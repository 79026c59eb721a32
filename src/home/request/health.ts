// Whether the server lives and whether it is ready, in the form of Kubernetes' health checks.

import type { HttpResponse } from '../../base/http.ts';
import { textResponse } from '../encoding/respond.ts';
import type { Store } from '../store/store.ts';

interface Check {
  readonly name: string;
  /** Undefined if all is well; otherwise what is wrong. */
  run(): string | undefined;
}

export interface HealthState {
  readonly store: Store;
  /** What readiness still waits for; undefined once everything is there. */
  waitsFor(): string | undefined;
}

export function answerHealth(name: string, state: HealthState, query: URLSearchParams): HttpResponse {
  const checks = name === 'livez' ? livenessChecks() : readinessChecks(state);
  const results = checks.map((check) => ({ name: check.name, failure: check.run() }));
  const isWell = results.every((result) => result.failure === undefined);
  if (isWell && !query.has('verbose')) return textResponse('ok');
  const lines = results.map(({ name: check, failure }) =>
    failure === undefined ? `[+]${check} ok` : `[-]${check} failed: ${failure}`,
  );
  lines.push(isWell ? `${name} check passed` : `${name} check failed`);
  return textResponse(`${lines.join('\n')}\n`, isWell ? 200 : 503);
}

function livenessChecks(): Check[] {
  return [{ name: 'ping', run: () => undefined }];
}

function readinessChecks({ store, waitsFor }: HealthState): Check[] {
  return [
    ...livenessChecks(),
    { name: 'store', run: () => store.writeFailure()?.message },
    { name: 'started', run: waitsFor },
  ];
}
