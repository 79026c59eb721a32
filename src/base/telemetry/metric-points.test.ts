import { expect, test } from 'vitest';
import { createMetrics } from '../metrics.ts';
import { metricPoints } from './metric-points.ts';

test('metric points: a counter, a gauge, histograms -> as OpenTelemetry counts them', async () => {
  const metrics = createMetrics();
  metrics.counter({ name: 'bytes_total', help: 'Bytes.', labelNames: ['to'] }).inc({ to: 'west' }, 7);
  metrics.gauge({ name: 'age_seconds', help: 'Age.' }).set(1.5);
  const histogram = metrics.histogram({ name: 'wait_seconds', help: 'Wait.', labelNames: ['queue'], buckets: [1, 5] });
  for (const value of [0.5, 3, 4, 60]) histogram.observe({ queue: 'a' }, value);
  histogram.observe({ queue: 'b' }, 1);
  const read = (await metrics.series()).map(metricPoints);
  expect(read).toEqual([
    {
      ...{ name: 'portolan_bytes_total', help: 'Bytes.', unit: 'By', kind: 'sum' },
      points: [{ attributes: { to: 'west' }, value: 7 }],
    },
    {
      ...{ name: 'portolan_age_seconds', help: 'Age.', unit: 's', kind: 'gauge' },
      points: [{ attributes: {}, value: 1.5 }],
    },
    {
      ...{ name: 'portolan_wait_seconds', help: 'Wait.', unit: 's', kind: 'histogram' },
      points: [
        {
          attributes: { queue: 'a' },
          value: { count: 4, sum: 67.5, buckets: { boundaries: [1, 5], counts: [1, 2, 1] } },
        },
        { attributes: { queue: 'b' }, value: { count: 1, sum: 1, buckets: { boundaries: [1, 5], counts: [1, 0, 0] } } },
      ],
    },
  ]);
});
