import { expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import type { PortChoice } from '../port-choice.ts';
import { KernelModel } from '../testing/kernel-model.ts';
import { Ruleset } from './ruleset.ts';
import { differenceScript, refillScript } from './script.ts';

const port = (ip: string, hosts: readonly number[], more: Partial<PortChoice> = {}): PortChoice => ({
  ip,
  family: 'IPv4',
  protocol: 'TCP',
  port: 80,
  backends: hosts.map((host) => ({ address: `10.0.0.${host}`, port: 8080, cluster: 'east' })),
  affinitySeconds: 0,
  ...more,
});

test('difference: one endpoint of three goes -> a few lines, whatever else there is', () => {
  const ruleset = new Ruleset({ isHairpin: () => false });
  ruleset.change(Array.from({ length: 500 }, (_, i) => [`a/s${i}`, [port(`243.0.1.${i}`, [1, 2, 3])]] as const));
  const difference = ruleset.change([['a/s7', [port('243.0.1.7', [1, 3])]]]);
  expect(differenceScript(difference)).toBe(`delete element inet portolan svc4 { 243.0.1.7 . tcp . 80 }
delete element inet portolan tcp4 { 243.0.1.7 . 80 . 1, 243.0.1.7 . 80 . 2 }
add element inet portolan svc4 { 243.0.1.7 . tcp . 80 : goto pick-tcp4-2 }
add element inet portolan tcp4 { 243.0.1.7 . 80 . 1 : 10.0.0.3 . 8080 }
`);
});

test('difference: the last user of a chain goes -> the chain goes in the same transaction', () => {
  const ruleset = new Ruleset({ isHairpin: () => false });
  const hosts = Array.from({ length: 20 }, (_, i) => i + 1);
  expect(ruleset.change([['a/a', [port('243.0.0.1', hosts)]]]).newChains).toEqual(['pick-tcp4-20']);
  expect(ruleset.change([['a/a', []]]).oldChains).toEqual(['pick-tcp4-20']);
});

test('difference: an address moves from one service to another -> deleted once, added once', () => {
  const ruleset = new Ruleset({ isHairpin: () => false });
  ruleset.change([['a/a', [port('243.0.0.1', [1])]]]);
  const { deleted, added } = ruleset.change([
    ['a/b', [port('243.0.0.1', [2])]],
    ['a/a', []],
  ]);
  expect(deleted.map(({ key }) => key)).toEqual(['243.0.0.1 . tcp . 80', '243.0.0.1 . 80 . 0']);
  expect(added.map(({ value }) => value)).toEqual(['goto pick-tcp4-1', '10.0.0.2 . 8080']);
});

test('difference: an endpoint goes -> named for each protocol, so that its connection tracking is cleared', () => {
  const ruleset = new Ruleset();
  const both = (hosts: readonly number[]) => [
    port('243.0.0.1', hosts),
    port('243.0.0.1', hosts, { protocol: 'UDP', port: 53 }),
  ];
  ruleset.change([['a/a', both([1, 2])]]);
  const { gone } = ruleset.change([['a/a', both([2])]]);
  const one = { ip: '243.0.0.1', version: 4, backend: '10.0.0.1 . 8080' };
  expect(gone).toEqual([
    { ...one, protocol: 'tcp' },
    { ...one, protocol: 'udp' },
  ]);
});

test('hairpin: an endpoint of two services of this cluster -> in the set until the second one lets go', () => {
  const ruleset = new Ruleset({ isHairpin: (cluster) => cluster === 'east' });
  const hairs = () => [...ruleset.elements()].filter(({ map }) => map === 'hair4').map(({ key }) => key);
  ruleset.change([
    ['a/a', [port('243.0.0.1', [1])]],
    ['a/b', [port('243.0.0.2', [1])]],
  ]);
  expect(hairs()).toEqual(['10.0.0.1 . 10.0.0.1']);
  ruleset.change([['a/a', []]]);
  expect(hairs()).toEqual(['10.0.0.1 . 10.0.0.1']);
  ruleset.change([['a/b', []]]);
  expect(hairs()).toEqual([]);
});

test('refill: chains, maps and sets that are not planned -> removed; who stays with whom is kept', () => {
  const script = refillScript(
    new Ruleset(),
    { ranges: [parseRange('243.0.0.0/12')!], redirectExceptUid: 1337 },
    { chains: ['pick-tcp4-90', 'left'], maps: ['old', 'svc4'], sets: ['mine', 'hair4'] },
  );
  expect(script).toContain('delete chain inet portolan pick-tcp4-90\n');
  expect(script).toContain('delete map inet portolan old\n');
  expect(script).toContain('delete set inet portolan mine\n');
  expect(script).not.toMatch(
    /(flush|delete) map inet portolan aff[46]\b|delete (chain|map|set) inet portolan (left|svc4|hair4)/,
  );
  expect(script).toContain('add rule inet portolan nat-out meta skuid 1337 return\n');
});

test('difference: two services with shares lose them at once -> chains go in an order that the kernel takes', () => {
  const ruleset = new Ruleset({ isHairpin: () => false });
  const kernel = new KernelModel();
  kernel.apply(refillScript(ruleset, { ranges: [parseRange('243.0.0.0/12')!] }, undefined));
  const shared = (ip: string, share: number, affinitySeconds: number) => {
    const all = port(ip, [1, 2, 3, 4], { affinitySeconds });
    const lots = [
      { share, endpoints: all.backends.slice(0, 2) },
      { share: 1 - share, endpoints: all.backends.slice(2) },
    ];
    return { ...all, lots };
  };
  for (const seconds of [0, 60]) {
    const services = ['a', 'b', 'c'].map(
      (name, index) => [`x/${name}`, `243.0.0.${index + 1}`, 0.9 - index / 10] as const,
    );
    const round = (ports: (ip: string, share: number) => PortChoice) =>
      kernel.apply(differenceScript(ruleset.change(services.map(([key, ip, share]) => [key, [ports(ip, share)]]))));
    round((ip, share) => shared(ip, share, seconds));
    round((ip) => port(ip, [1, 2, 3, 4], { affinitySeconds: seconds }));
    expect(kernel.chains.filter((chain) => /^(share|draw|id)-/.test(chain))).toEqual([]);
  }
});
