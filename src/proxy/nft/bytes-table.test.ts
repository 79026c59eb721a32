import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { parseRange } from '../../base/net/ip.ts';
import { type ByteCounts, BytesLayout, noRoomKey, removeBytesScript } from './bytes-table.ts';
import { CounterTable } from './counter-table.ts';

const element = (endpoint: string, bytes: number) => ({
  elem: { val: { concat: ['243.0.0.1', endpoint, 8080] }, counter: { packets: 1, bytes } },
});
const set = (name: string, ...elem: unknown[]) => ({ set: { name, elem } });
const listing = (...nftables: unknown[]) => JSON.stringify({ nftables });
const ranges = [parseRange('243.0.0.0/16')!];

describe('bytes', () => {
  test('both directions of an endpoint, packets without room -> told apart; odd elements and null lists are left out', () => {
    const layout = new BytesLayout();
    const counted = layout.read(
      listing(
        set('sent4-1', element('10.1.0.1', 60), null, { elem: { val: 'x', counter: {} } }),
        set('received4-1', element('10.1.0.1', 500)),
        { rule: { expr: [{ match: { right: 'reply' } }, { counter: { packets: 1, bytes: 40 } }, { accept: null }] } },
        { rule: { expr: [{ match: { right: 'original' } }, { counter: { packets: 1, bytes: 7 } }, { accept: null }] } },
        { rule: { expr: null } },
      ),
    );
    expect(Object.fromEntries(counted)).toEqual({
      '243.0.0.1 10.1.0.1 8080 1': { sent: 60, received: 500 },
      [noRoomKey]: { sent: 7, received: 40 },
    });
    expect(layout.read('{"nftables":null}').size).toBe(0);
  });

  test('sets fill up -> rules change to new ones at once, the old ones are read once more and deleted; no byte is lost', async () => {
    const simulation = new Simulation({ seed: 1 });
    const applied: string[] = [];
    let tables = listing();
    const sums: ByteCounts = { sent: 0, received: 0 };
    const table = new CounterTable<ByteCounts>({
      ...{ world: simulation.world('proxy'), log: silentLog, ranges, lookMs: 1_000, problem: 'bytes are not counted' },
      layout: new BytesLayout({ turnAt: 1 }),
      nft: { apply: async (script) => void applied.push(script), listCounts: async () => tables },
      onLook: (since) => {
        for (const { sent } of since.values()) Object.assign(sums, { sent: sums.sent + sent });
      },
    });
    const starting = table.start();
    await simulation.time.settle(starting);
    tables = listing(set('sent4-1', element('10.1.0.1', 10), element('10.1.0.2', 10)));
    await simulation.time.advance(1_000);
    expect(applied).toHaveLength(2);
    // What came before the rules changed, and after.
    tables = listing(
      set('sent4-1', element('10.1.0.1', 15), element('10.1.0.2', 10)),
      set('sent4-2', element('10.1.0.1', 3)),
    );
    await simulation.time.advance(1_000);
    expect(applied[2]).toContain('@sent4-2 accept');
    expect(applied[2]).not.toContain('delete set');
    tables = listing(set('sent4-2', element('10.1.0.1', 4)));
    await simulation.time.advance(1_000);
    expect(applied[3]).toContain('delete set inet portolan-bytes sent4-1');
    expect(sums.sent).toBe(10 + 10 + 5 + 4);
    await table.stop();
    expect(applied.at(-1)).toBe(removeBytesScript);
  });
});
