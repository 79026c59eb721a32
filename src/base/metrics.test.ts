import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';

test('metrics: whatever is made -> read under one prefix; asked for twice -> the same one', async () => {
  const metrics = createMetrics();
  metrics.counter({ name: 'starts_total', help: 'Starts' }).inc();
  metrics.counter({ name: 'starts_total', help: 'Starts' }).inc();
  metrics.gauge({ name: 'depth', help: 'Depth', collect: (gauge) => gauge.set(7) });
  const text = await metrics.text();
  expect(text).toContain('portolan_starts_total 2');
  expect(text).toContain('portolan_depth 7');
});

test.each(['wait_ms', 'wait_milliseconds', 'size_mb', 'age_minutes'])('metrics: %s -> refused, base units', (name) => {
  const metrics = createMetrics();
  expect(() => metrics.histogram({ name, help: '' })).toThrow('use base units');
  expect(() => metrics.gauge({ name, help: '' })).toThrow('use base units');
});

test('metrics: a counter that is not called a total -> refused', () => {
  expect(() => createMetrics().counter({ name: 'starts', help: '' })).toThrow('ends in _total');
});
