import { expect, test } from 'vitest';
import type { PortChoice } from '../port-choice.ts';
import { chainOf, elementsOf, planPort } from './port-plan.ts';

const choice = (hosts: readonly number[], affinitySeconds = 0): PortChoice => ({
  ip: '243.0.0.1',
  family: 'IPv4',
  protocol: 'TCP',
  port: 80,
  backends: hosts.map((host) => ({ address: `10.0.0.${host}`, port: 8080, cluster: 'east' })),
  affinitySeconds,
});
const slotsOf = (hosts: readonly number[]) => hosts.map((host) => `10.0.0.${host} . 8080`);

test.each([
  ['one comes', [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]],
  ['the last goes', [1, 2, 3], [1, 2], [1, 2]],
  ['the first goes', [1, 2, 3], [2, 3], [3, 2]],
  ['one goes and one comes', [1, 2, 3], [1, 3, 4], [1, 4, 3]],
  ['two go', [1, 2, 3, 4], [3, 4], [4, 3]],
  ['all go', [1, 2], [], []],
  ['all are others', [1, 2], [3, 4, 5], [3, 4, 5]],
  ['nothing changes', [1, 2], [2, 1], [1, 2]],
])('slots: %s -> those that stay keep theirs', (_what, before, after, slots) => {
  expect(planPort(choice(after), planPort(choice(before), undefined)).lots[0]?.slots ?? []).toEqual(slotsOf(slots));
});

test('port plan: no backend -> no element, so the address refuses', () => {
  const plan = planPort(choice([]), undefined);
  expect(chainOf(plan)).toBeUndefined();
  expect([...elementsOf(plan)]).toEqual([]);
});

test('port plan: affinity -> an id for each backend that stays when others come and go, and over a restart', () => {
  const first = planPort(choice([1, 2, 3], 5), undefined);
  const second = planPort(choice([3, 4], 5), first);
  const restarted = planPort(choice([4, 3], 5), undefined);
  const id = '10.0.0.3 . 8080';
  expect(second.ids.get(id)).toBe(first.ids.get(id));
  expect(restarted.ids.get(id)).toBe(first.ids.get(id));
  expect(new Set(first.ids.values()).size).toBe(3);
  expect(chainOf(second)).toBe('aff-tcp4-2-5s');
});

test('port plan: ten thousand backends with affinity -> ten thousand ids', () => {
  const backends = Array.from({ length: 10_000 }, (_, i) => ({
    address: `10.${i >> 8}.${i & 255}.1`,
    port: 80,
    cluster: 'x',
  }));
  const plan = planPort({ ...choice([], 60), backends }, undefined);
  expect(new Set(plan.ids.values()).size).toBe(10_000);
  for (const id of plan.ids.values()) expect(id).toMatch(/^[1-9a-f][0-9a-f]{3}:[1-9a-f][0-9a-f]{3}$/);
});
