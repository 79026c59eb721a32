// Ports that the proxy itself listens on.

import { expect, test } from 'vitest';
import { virtualPort } from '../../../xds/virtual-listener.ts';
import { proxyPorts } from '../../kinds/mesh-external-service.ts';
import { externalService } from '../../testing/services.ts';
import { defaultOutboundPorts } from '../redirects.ts';
import { externalServiceErrors } from './external-service.ts';

test.each([...proxyPorts])(
  'external service: a match on port %d, where the proxy listens -> refused with the reason',
  (port) => {
    const match = (at: number) => externalService(`{ match: [{ type: IP, value: 10.0.0.1, port: ${at} }] }`);
    expect(externalServiceErrors(match(port)).map(({ field, message }) => `${field}: ${message}`)).toEqual([
      expect.stringMatching(/^spec\.match\[0\]\.port: .*must not be a port of the proxy itself: 15001, 15002, 15003/),
    ]);
    expect(externalServiceErrors(match(port + 10))).toEqual([]);
  },
);

test('external service: the ports that are refused -> those on which the proxy listens', () => {
  const { inspected, plain } = defaultOutboundPorts;
  expect([...proxyPorts].sort()).toEqual([inspected, plain, virtualPort]);
});
