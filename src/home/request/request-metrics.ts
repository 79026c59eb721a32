// Counts requests and measures how long they take; a watch counts when it begins.

import type { Metrics } from '../../base/metrics.ts';
import type { Route } from '../model/route.ts';

export interface RequestMetrics {
  observe(route: Route | undefined, code: number, durationMs: number): void;
}

export function createRequestMetrics(metrics: Metrics | undefined, openWatches: () => number): RequestMetrics {
  if (metrics === undefined) return { observe: () => {} };
  const requests = metrics.counter({
    name: 'api_requests_total',
    help: 'Requests answered, by verb, resource and HTTP status code.',
    labelNames: ['verb', 'resource', 'code'],
  });
  const durations = metrics.histogram({
    name: 'api_request_duration_seconds',
    help: 'Time from a request to its answer, by verb and resource; of a watch, to its beginning.',
    labelNames: ['verb', 'resource'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  });
  metrics.gauge({
    name: 'api_open_watches',
    help: 'Watches that are open.',
    collect: (gauge) => gauge.set(openWatches()),
  });
  return {
    observe: (route, code, durationMs) => {
      const labels = labelsOf(route, code);
      requests.inc({ ...labels, code });
      durations.observe(labels, durationMs / 1000);
    },
  };
}

// Values that clients invent must not become labels: only known names do.
function labelsOf(route: Route | undefined, code: number): { verb: string; resource: string } {
  if (route?.kind !== 'resource') return { verb: 'path', resource: '' };
  const isKnown = code < 400 || code === 409 || code === 410 || code === 422;
  return { verb: route.verb, resource: isKnown ? route.plural : '' };
}
