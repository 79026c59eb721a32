import { expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import type { MutualTlsTarget } from '../../base/real/prober-mutual-tls.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { GatewayChecks, type GatewayWay } from './gateway-checks.ts';

const target = (address: string) => ({ address, port: 15_443 }) as MutualTlsTarget;

test('gateway checks: one of two answers, none answers, a cluster goes -> reached, why not, forgotten; measured for each', async () => {
  const down = new Set(['203.0.113.2', '203.0.113.3']);
  let ways: GatewayWay[] = [
    { cluster: 'east', targets: [target('203.0.113.1'), target('203.0.113.2')] },
    { cluster: 'south', targets: [target('203.0.113.3')] },
  ];
  const metrics = createMetrics();
  let changes = 0;
  const checks = new GatewayChecks({
    ...{ timers: createRealWorld().timers, metrics, ways: () => ways, roundMs: 5 },
    probe: async ({ address }) => (down.has(address) ? 'it refuses connections' : ''),
    onChange: () => (changes += 1),
  });
  checks.start();
  const found = () => Object.fromEntries(checks.found);
  await expect.poll(found).toEqual({ east: '', south: 'gateway 203.0.113.3:15443: it refuses connections' });
  expect(await metrics.text()).toContain('portolan_gateway_reachable{remote="east",gateway="203.0.113.2:15443"} 0');
  down.add('203.0.113.1');
  await expect
    .poll(() => found()['east'])
    .toBe('gateway 203.0.113.1:15443: it refuses connections; gateway 203.0.113.2:15443: it refuses connections');
  ways = [];
  await expect.poll(found).toEqual({});
  expect(await metrics.text()).not.toContain('gateway_reachable{');
  expect(changes).toBe(3);
  checks.stop();
});
