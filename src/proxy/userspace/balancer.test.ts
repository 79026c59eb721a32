import { expect, test } from 'vitest';
import type { PortChoice } from '../port-choice.ts';
import { seeded } from '../testing/random-catalog.ts';
import { Balancer } from './balancer.ts';

const choice = (hosts: readonly number[], affinitySeconds = 0): PortChoice => ({
  ip: '127.100.0.1',
  family: 'IPv4',
  protocol: 'TCP',
  port: 80,
  backends: hosts.map((host) => ({ address: `10.0.0.${host}`, port: 80, cluster: 'east' })),
  affinitySeconds,
});

function start(first: PortChoice) {
  let nowMs = 0;
  const float = seeded(1);
  const random = { float, bytes: () => new Uint8Array(), uuid: () => '' };
  const clock = { wallMs: () => nowMs, monotonicMs: () => nowMs };
  return { balancer: new Balancer(first, { clock, random }), advance: (ms: number) => (nowMs += ms) };
}

test('balancer: three backends -> even shares', () => {
  const { balancer } = start(choice([1, 2, 3]));
  const counts = new Map<string, number>();
  for (let i = 0; i < 9000; i += 1) {
    const { address } = balancer.pick('x')!;
    counts.set(address, (counts.get(address) ?? 0) + 1);
  }
  for (const count of counts.values()) expect(Math.abs(count - 3000)).toBeLessThan(200);
});

test('balancer: affinity -> the same backend until the timeout has passed without a connection', () => {
  const { balancer, advance } = start(choice([1, 2, 3, 4, 5, 6, 7, 8], 10));
  const first = balancer.pick('client');
  for (let i = 0; i < 50; i += 1) {
    advance(9000);
    expect(balancer.pick('client')).toBe(first);
  }
  const later = new Set<string>();
  for (let i = 0; i < 50; i += 1) {
    advance(11_000);
    later.add(balancer.pick('client')!.address);
  }
  expect(later.size).toBeGreaterThan(2);
});

test('balancer: the backend of a client goes -> another one; those of others stay', () => {
  const { balancer } = start(choice([1, 2, 3], 60));
  const clients = Array.from({ length: 30 }, (_, i) => `c${i}`);
  const before = clients.map((client) => balancer.pick(client)!.address);
  balancer.update(choice([1, 2], 60));
  const after = clients.map((client) => balancer.pick(client)!.address);
  for (const [i, address] of before.entries()) if (address !== '10.0.0.3') expect(after[i]).toBe(address);
  expect(after).not.toContain('10.0.0.3');
});

test('balancer: backends that were tried -> not again', () => {
  const { balancer } = start(choice([1, 2]));
  const first = balancer.pick('x')!;
  const second = balancer.pick('x', new Set([first]))!;
  expect(second.address).not.toBe(first.address);
  expect(balancer.pick('x', new Set([first, second]))).toBeUndefined();
});
