import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { parseRange } from '../../base/net/ip.ts';
import type { Choice } from '../choose.ts';
import { type KernelCounters, readCounters } from './counts-table.ts';
import { KernelCounts } from './kernel-counts.ts';

type Row = readonly [set: string, vip: string, endpoint: string, port: number, packets: number];

function listing(rows: readonly Row[]): string {
  const sets = Map.groupBy(rows, ([set]) => set);
  return JSON.stringify({
    nftables: [
      { metainfo: {} },
      ...[...sets].map(([name, some]) => ({
        set: {
          name,
          elem: some.map(([, vip, endpoint, port, packets]) => ({
            elem: { val: { concat: [vip, endpoint, port] }, counter: { packets, bytes: 0 } },
          })),
        },
      })),
    ],
  });
}

async function scene() {
  const simulation = new Simulation({ seed: 1 });
  const counted = new Set(['shop/web']);
  const backend = (address: string, cluster: string) => ({ address, port: 8080, cluster });
  const port = { ip: '243.0.0.1', family: 'IPv4', protocol: 'TCP', port: 80, affinitySeconds: 0 } as const;
  const backends = [backend('10.1.0.1', 'east'), backend('10.2.0.1', 'west')];
  const choice = { ports: [{ ...port, backends }], problems: [] } as unknown as Choice;
  const applied: string[] = [];
  const looks: KernelCounters[] = [];
  let rows: Row[] = [];
  const counts = new KernelCounts({
    world: simulation.world('proxy'),
    log: silentLog,
    state: { counted: () => counted, choiceOf: () => choice },
    ranges: [parseRange('243.0.0.0/16')!],
    onLook: (since) => looks.push(since),
    nft: { apply: async (script) => void applied.push(script), listCounts: async () => listing(rows) },
  });
  counts.start();
  const look = async (next: Row[]) => {
    rows = next;
    await simulation.time.advance(2_000);
    return Object.fromEntries(counts.tally.report().get('shop/web') ?? []);
  };
  return { counts, counted, applied, look, looks };
}

const both = (tried: number, answered: number): Row[] => [
  ['tried4', '243.0.0.1', '10.1.0.1', 8080, tried],
  ['answered4', '243.0.0.1', '10.1.0.1', 8080, answered],
];

describe('kernel counts', () => {
  test('sums are exact, and a counter that began again is added', async () => {
    const { look } = await scene();
    expect(await look(both(10, 8))).toEqual({
      east: { tried: 10, answered: 8, reset: 0 },
      west: { tried: 0, answered: 0, reset: 0 },
    });
    expect((await look(both(15, 15)))['east']).toEqual({ tried: 15, answered: 15, reset: 0 });
    expect((await look(both(3, 3)))['east']).toEqual({ tried: 18, answered: 18, reset: 0 });
    expect((await look([...both(3, 3), ['reset4', '243.0.0.1', '10.1.0.1', 8080, 2]]))['east']).toEqual({
      tried: 18,
      answered: 18,
      reset: 2,
    });
  });

  test('an endpoint that no service has, another address -> not counted', async () => {
    const { look } = await scene();
    const foreign: Row[] = [
      ['answered4', '243.0.0.1', '10.9.0.1', 8080, 5],
      ['answered4', '243.0.0.9', '10.1.0.1', 8080, 5],
    ];
    expect((await look(foreign))['east']).toEqual({ tried: 0, answered: 0, reset: 0 });
  });

  test('nothing is shifted -> nothing is summed; each look tells what has come since', async () => {
    const { counts, counted, applied, look, looks } = await scene();
    counted.clear();
    await look(both(4, 1));
    expect(applied.at(-1)).toContain('ct original ip daddr 243.0.0.0/16 goto count4');
    await look([...both(6, 1), ['refused4', '243.0.0.1', '10.1.0.1', 8080, 2]]);
    expect(counts.tally.report().size).toBe(0);
    const told = looks.map((each) => each.get('243.0.0.1 10.1.0.1 8080')).filter((each) => each !== undefined);
    expect(told).toEqual([
      { tried: 4, answered: 1, reset: 0, refused: 0 },
      { tried: 2, answered: 0, reset: 0, refused: 2 },
    ]);
    await counts.stop();
    expect(applied.at(-1)).toBe('add table inet portolan-counts\ndelete table inet portolan-counts\n');
  });

  test('counters: null lists and elements of another form -> left out', () => {
    expect(readCounters('{"nftables":null}').size).toBe(0);
    const odd = { nftables: [{ set: { name: 'tried4', elem: [null, {}, { elem: { val: 'x', counter: {} } }] } }] };
    expect(readCounters(JSON.stringify(odd)).size).toBe(0);
  });
});
