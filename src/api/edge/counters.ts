// What the edge counts of requests and connections.

import type { Metrics } from '../../base/metrics.ts';

export interface EdgeCounters {
  requestDone(request: { method: string; status: number; durationMs: number; isStream: boolean }): void;
  connectionOpened(): void;
  connectionClosed(): void;
  readerCut(): void;
}

const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export function edgeCounters(metrics: Metrics): EdgeCounters {
  const requests = metrics.counter({
    name: 'http_requests_total',
    help: 'Requests that were answered, by method and status code; 0 is a caller who left before the answer',
    labelNames: ['method', 'code'],
  });
  const seconds = metrics.histogram({
    name: 'http_request_seconds',
    help: 'Time from the header of a request to the end of its answer, watches left out',
    labelNames: ['method'],
    buckets,
  });
  const connections = metrics.gauge({ name: 'http_connections', help: 'Open connections' });
  const readersCut = metrics.counter({
    name: 'http_readers_cut_total',
    help: 'Answers that were cut off because their reader took nothing for too long',
  });
  return {
    requestDone: ({ method, status, durationMs, isStream }) => {
      // Anybody can invent methods; the number of series must not be theirs to choose.
      const label = knownMethods.has(method) ? method : 'other';
      requests.inc({ method: label, code: status });
      if (!isStream) seconds.observe({ method: label }, durationMs / 1000);
    },
    connectionOpened: () => connections.inc(),
    connectionClosed: () => connections.dec(),
    readerCut: () => readersCut.inc(),
  };
}

export const countNothing: EdgeCounters = {
  requestDone: () => {},
  connectionOpened: () => {},
  connectionClosed: () => {},
  readerCut: () => {},
};
