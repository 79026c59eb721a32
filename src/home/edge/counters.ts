// Counters of requests and connections. The API measures its own latency.

import type { Metrics } from '../../base/metrics.ts';

export interface EdgeCounters {
  requestDone(request: { readonly method: string; readonly status: number }): void;
  connectionOpened(): void;
  connectionClosed(): void;
  readerCut(): void;
}

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export function edgeCounters(metrics: Metrics): EdgeCounters {
  const requests = metrics.counter({
    name: 'http_requests_total',
    help: 'Requests that were answered, by method and status code; 0 is a caller who left before the answer.',
    labelNames: ['method', 'code'],
  });
  const connections = metrics.gauge({ name: 'http_connections', help: 'Open connections.' });
  const readersCut = metrics.counter({
    name: 'http_readers_cut_total',
    help: 'Answers that were cut off because their reader took nothing for too long.',
  });
  return {
    requestDone: ({ method, status }) => {
      // Anybody can invent methods; the number of series must not be theirs to choose.
      const label = knownMethods.has(method) ? method : 'other';
      requests.inc({ method: label, code: status });
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
