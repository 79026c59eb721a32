import { describe, expect, test } from 'vitest';
import type { Service } from '../../kube/objects/service.ts';
import { type LocalFacts, localAddresses } from './shard-addresses.ts';

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'checkout', namespace: 'shop' },
  spec: { ports: [{ name: 'http', port: 80 }], clusterIPs: ['10.96.0.7'] },
} as Service;

function slice(port: number, ...ready: [string, boolean][]): LocalFacts['slices'][number] {
  const endpoints = ready.map(([address, isReady]) => ({ addresses: [address], conditions: { ready: isReady } }));
  return { name: 's', addressType: 'IPv4', endpoints, ports: [{ name: 'http', protocol: 'TCP', port }] };
}

describe('local addresses', () => {
  const facts: LocalFacts = {
    service,
    carriedIps: ['243.0.0.9'],
    addresses: { loadBalancer: [{ ip: '198.51.100.1' }, { hostname: 'lb.example' }] },
    slices: [slice(80, ['10.1.0.1', true], ['10.1.0.2', false])],
  };
  const without = { loadBalancer: [] };

  test('local addresses: a carried clusterset IP, a load balancer, endpoints -> the first that there is, never the cluster IP', () => {
    expect(localAddresses(facts)).toEqual(['243.0.0.9']);
    expect(localAddresses({ ...facts, carriedIps: [] })).toEqual(['198.51.100.1']);
    expect(localAddresses({ ...facts, carriedIps: [], addresses: without })).toEqual(['10.1.0.1']);
    expect(localAddresses({ ...facts, carriedIps: [], addresses: without, slices: [] })).toEqual([]);
  });

  test('local addresses: endpoints that listen on another port than the service -> none of them', () => {
    const slices = [slice(8080, ['10.1.0.1', true])];
    expect(localAddresses({ ...facts, carriedIps: [], addresses: without, slices })).toEqual([]);
  });

  test('local addresses: more endpoints than the record may have -> the first 16, each once', () => {
    const many = Array.from({ length: 40 }, (_, n): [string, boolean] => [`10.1.0.${n % 20}`, true]);
    expect(localAddresses({ ...facts, carriedIps: [], addresses: without, slices: [slice(80, ...many)] }).length).toBe(
      16,
    );
  });
});
