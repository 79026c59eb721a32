import { expect, test } from 'vitest';
import { createLog } from '../../base/log.ts';
import { type NamedWay, namedWaysMax } from '../gateways/named-ways.ts';
import { WithheldList } from '../withheld.ts';
import { WaysBeyond } from './ways-beyond.ts';

const ways = (count: number): NamedWay[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ service: `shop/s${index}`, cluster: 'east', port: 80, authority: `s${index}.shop.svc.clusterset.local:80` },
    address: `243.9.${index >> 8}.${index & 255}`,
  }));

test('ways beyond the bound: none, two for a while, none -> the imports concerned, once in the log each time', () => {
  const lines: string[] = [];
  const withheld = new WithheldList();
  const bounds = new WaysBeyond(
    withheld,
    createLog({
      clock: { wallMs: () => 0, monotonicMs: () => 0 },
      level: 'info',
      write: (line) => void lines.push(line),
    }),
  );
  const said = () => [...withheld.values()].map(({ cause, reason }) => `${cause.namespace}/${cause.name} ${reason}`);
  bounds.look('east', ways(namedWaysMax));
  expect([said(), lines]).toEqual([[], []]);
  for (const _again of [1, 2]) bounds.look('east', ways(namedWaysMax + 2));
  expect(said()).toHaveLength(2);
  expect(said()[0]).toMatch(
    /^shop\/s\d+ 1 of its addresses and ports in cluster east are not reached: .* for 10000 by name/,
  );
  expect(lines).toHaveLength(1);
  bounds.look('east', []);
  expect(said()).toEqual([]);
  bounds.look('east', ways(namedWaysMax + 1));
  expect([said().length, lines.length]).toEqual([1, 2]);
});
