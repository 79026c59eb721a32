import { expect, test } from 'vitest';
import { isAskedByName, isOffered, remoteEndpoint, remoteFamily } from './remote-endpoint.ts';

test('remote endpoint: never ready for other readers, offered where it serves; others go by ready', () => {
  for (const family of ['IPv4', 'IPv6'] as const) {
    const endpoint = remoteEndpoint(family, { zone: 'eu-1', isUsable: true });
    expect(remoteFamily(endpoint.addresses?.[0])).toBe(family);
    expect(endpoint.conditions?.ready).toBe(false);
    expect(isOffered(endpoint)).toBe(true);
    expect(isOffered(remoteEndpoint(family, { isUsable: false }))).toBe(false);
    expect(isAskedByName(endpoint.addresses?.[0])).toBe(false);
    const named = remoteEndpoint(family, { isUsable: true, isAskedByName: true }).addresses?.[0];
    expect([remoteFamily(named), isAskedByName(named)]).toEqual([family, true]);
  }
  expect(isOffered({ addresses: ['10.0.0.1'] })).toBe(true);
  expect(isOffered({ addresses: ['10.0.0.1'], conditions: { ready: false, serving: true } })).toBe(false);
  expect(remoteFamily('db.example')).toBeUndefined();
});
