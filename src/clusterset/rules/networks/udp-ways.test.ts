import { expect, test } from 'vitest';
import { formatRouting, noRouting, readRouting } from '../routing/routing.ts';
import { assignUdpWays, isUdpListenerPort, type UdpWay, udpWaysMax } from './udp-ways.ts';

const none = new Set<number>();
const dns = { cluster: 'east', port: 53 };
const portsOf = (ways: readonly UdpWay[]) => ways.map(({ listenerPort }) => listenerPort);

test('udp ways: each port and cluster has a port of its own, kept while it is wanted', () => {
  const first = assignUdpWays({ key: 'shop/dns', wanted: [dns], present: [], taken: none });
  const wanted = [{ cluster: 'south', port: 53 }, dns, { cluster: 'east', port: 123 }];
  const next = assignUdpWays({ key: 'shop/dns', wanted, present: first, taken: none });
  expect(next[1]).toEqual(first[0]);
  expect(new Set(portsOf(next)).size).toBe(3);
  expect(portsOf(next).every(isUdpListenerPort)).toBe(true);
  expect(assignUdpWays({ key: 'shop/dns', wanted: [], present: next, taken: none })).toEqual([]);
});

test('udp ways: a port that another import has, or that is none of these -> another one', () => {
  const [way] = assignUdpWays({ key: 'shop/dns', wanted: [dns], present: [], taken: none });
  const taken = new Set([way!.listenerPort]);
  const [other] = assignUdpWays({ key: 'shop/dns', wanted: [dns], present: [way!], taken });
  expect(other!.listenerPort).not.toBe(way!.listenerPort);
  const foreign = [{ ...dns, listenerPort: 53 }];
  expect(assignUdpWays({ key: 'shop/dns', wanted: [dns], present: foreign, taken: none })).toEqual([way]);
});

test('udp ways: all taken -> none for new ones, those that are there stay', () => {
  const [way] = assignUdpWays({ key: 'shop/dns', wanted: [dns], present: [], taken: none });
  const free = Array.from({ length: 1600 }, (_, index) => 15_101 + index).filter((port) => port !== way!.listenerPort);
  const taken = new Set(free.slice(0, udpWaysMax));
  const wanted = [dns, { cluster: 'east', port: 123 }];
  expect(assignUdpWays({ key: 'shop/dns', wanted, present: [way!], taken })).toEqual([way]);
});

test('udp ways: on the import -> read as they were written; nonsense is left out', () => {
  const udp = [{ ...dns, listenerPort: 15_200 }];
  expect(readRouting(formatRouting({ ...noRouting, udp })).udp).toEqual(udp);
  for (const bad of [null, {}, [null], [['east', 53]], [['east', 0, 15_200]], [[1, 53, 15_200]], [['east', 53, 22]]])
    expect(readRouting(JSON.stringify({ u: bad })).udp).toBeUndefined();
});
