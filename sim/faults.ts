// Faults that a person can name: "the first create of a slice at the broker fails". Each is a rule over requests; the
// real handler answers what no rule touches.

import type { HttpRequest, HttpResponse } from '../src/base/http.ts';
import type { HttpHandler } from './virtual-network.ts';

export interface Fault {
  readonly home: string;
  readonly method: string;
  /** Part of the path. */
  readonly path: string;
  /** Only for requests of this process, such as `agent-east`; for all requests when absent. */
  readonly from?: string;
  /** How often it strikes; once when absent. */
  times?: number;
  /** `before`: nothing was done. `after`: it was done, and the answer is lost. */
  readonly when?: 'before' | 'after';
  readonly code?: number;
}

/** To be given as `wrap`: faults added to the list later strike too. */
export function withFaults(faults: Fault[]): (home: string, handler: HttpHandler) => HttpHandler {
  return (home, handler) => async (request) => {
    const fault = faults.find((candidate) => strikes(candidate, home, request));
    if (fault === undefined) return handler(request);
    fault.times = (fault.times ?? 1) - 1;
    if (fault.when === 'after') await handler(request);
    return failure(fault);
  };
}

function strikes(fault: Fault, home: string, request: HttpRequest): boolean {
  const isMeant = fault.home === home && fault.method === request.method && request.path.includes(fault.path);
  const isFrom = fault.from === undefined || request.headers['authorization'] === `Bearer ${fault.from}`;
  return isMeant && isFrom && (fault.times ?? 1) > 0;
}

function failure({ code = 500 }: Fault): HttpResponse {
  const reason = code === 409 ? 'Conflict' : 'InternalError';
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason,
    message: 'made to fail',
    code,
  };
  return { status: code, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(status)) };
}
