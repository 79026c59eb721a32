import { expect, test } from 'vitest';
import type { Choice } from '../choose.ts';
import { endpointsOf } from './connectivity.ts';

test('connectivity: endpoints to ask by themselves -> of TCP ports, and none that only a gateway reaches', () => {
  const backend = (address: string, more: object = {}) => ({ address, port: 8080, cluster: 'east', ...more });
  const ports = [
    { protocol: 'TCP', backends: [backend('10.1.0.1'), backend('10.2.0.1', { isBehindGateway: true })] },
    { protocol: 'UDP', backends: [backend('10.1.0.2')] },
  ];
  expect(endpointsOf({ ports } as unknown as Choice)).toEqual([backend('10.1.0.1')]);
});
