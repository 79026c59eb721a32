import { expect, test } from 'vitest';
import { isOffered, remoteEndpoint, remoteFamily } from './remote-endpoint.ts';

test('remote endpoint: never ready for other readers, offered where it serves; others go by ready', () => {
  for (const family of ['IPv4', 'IPv6'] as const) {
    const endpoint = remoteEndpoint(family, 'eu-1', true);
    expect(remoteFamily(endpoint.addresses?.[0])).toBe(family);
    expect(endpoint.conditions?.ready).toBe(false);
    expect(isOffered(endpoint)).toBe(true);
    expect(isOffered(remoteEndpoint(family, undefined, false))).toBe(false);
  }
  expect(isOffered({ addresses: ['10.0.0.1'] })).toBe(true);
  expect(isOffered({ addresses: ['10.0.0.1'], conditions: { ready: false, serving: true } })).toBe(false);
  expect(remoteFamily('db.example')).toBeUndefined();
});
