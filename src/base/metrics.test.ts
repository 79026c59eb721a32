import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';

test('metrics: whatever is made -> read under one prefix; asked for twice -> the same one', async () => {
  const metrics = createMetrics();
  metrics.counter({ name: 'starts_total', help: 'Starts.' }).inc();
  metrics.counter({ name: 'starts_total', help: 'Starts.' }).inc();
  metrics.gauge({ name: 'depth', help: 'Depth.', collect: (gauge) => gauge.set(7) });
  metrics.computed({ name: 'ends_total', help: 'Ends.', type: 'counter', values: () => [{ labels: {}, value: 3 }] });
  const text = await metrics.text();
  expect(text).toContain('portolan_starts_total 2');
  expect(text).toContain('portolan_depth 7');
  expect(text).toContain('# TYPE portolan_ends_total counter\nportolan_ends_total 3');
});

test('metrics: a gauge that is computed is made again -> the newest computes it', async () => {
  const metrics = createMetrics();
  for (const value of [1, 2]) metrics.gauge({ name: 'depth', help: 'Depth.', collect: (gauge) => gauge.set(value) });
  expect(await metrics.text()).toContain('portolan_depth 2');
});

test('metrics: ends of certificates -> one series each, while there is one', async () => {
  const metrics = createMetrics();
  let proxyEndsMs: number | undefined = 5500;
  metrics.certificateEnd('serving', () => 7000);
  metrics.certificateEnd('proxy', () => proxyEndsMs);
  const series = async () => (await metrics.text()).split('\n').filter((line) => line.includes('{certificate='));
  const name = 'portolan_certificate_expiry_timestamp_seconds';
  expect(await series()).toEqual([`${name}{certificate="serving"} 7`, `${name}{certificate="proxy"} 5`]);
  proxyEndsMs = undefined;
  expect(await series()).toEqual([`${name}{certificate="serving"} 7`]);
});

test.each([
  ...['wait_ms', 'wait_milliseconds', 'size_mb', 'age_minutes'].map(
    (name) => ['gauge', name, 'use base units'] as const,
  ),
  ['histogram', 'wait_ms', 'use base units'],
  ['histogram', 'wait', "a histogram's name ends in its unit"],
  ['counter', 'starts', 'ends in _total'],
  ['gauge', 'starts_total', 'only the name of a counter'],
  ['gauge', 'starts_count', 'belongs to the series of a histogram'],
  ['gauge', 'startsHere', 'snake_case'],
] as const)('metrics: a %s called %s -> refused: %s', (type, name, message) => {
  expect(() => createMetrics()[type]({ name, help: 'Starts.' })).toThrow(message);
});

test.each(['', 'starts.', 'Starts'])('metrics: help %j -> refused', (help) => {
  expect(() => createMetrics().gauge({ name: 'starts', help })).toThrow('one sentence');
});

test.each(['le', 'job', 'byZone'])('metrics: label %s -> refused', (label) => {
  expect(() => createMetrics().gauge({ name: 'starts', help: 'Starts.', labelNames: [label] })).toThrow(
    `label ${label}`,
  );
});
