import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { IngressNames } from './ingress-names.ts';

function setUp() {
  const sim = new Simulation({ seed: 1 });
  const answers = new Map<string, string[]>();
  const changed: string[] = [];
  const reserved = { zones: [], ranges: ['10.96.0.0/12'], hosts: ['203.0.113.5'] };
  const names = new IngressNames({
    ...{ world: sim.world('xds'), log: silentLog, reserved: () => reserved },
    lookUp: async (name) => ({ addresses: answers.get(name) ?? [], ttlSeconds: 5 }),
    onChange: (services) => changed.push(...services),
  });
  const spec = (allowedIngress: string[] = []) => ({ allowedIngress, trust: { domain: 'acme.example' } });
  return { sim, answers, changed, names, spec };
}

test('ingress names: addresses of our own and special ones -> left out, with the reason; the others are used', async () => {
  const { sim, answers, changed, names, spec } = setUp();
  answers.set('in.acme.example', ['127.0.0.1', '10.96.0.1', '203.0.113.5', '169.254.169.254', '203.0.113.9']);
  names.follow('a', 'acme', [{ address: 'in.acme.example' }, { address: '203.0.113.80' }]);
  expect(names.addressesOf('in.acme.example', 'acme', spec())).toEqual({ kind: 'unknown' });
  await sim.time.advance(100);
  expect(changed).toEqual(['a']);
  const found = names.addressesOf('in.acme.example', 'acme', spec());
  expect(found).toMatchObject({ kind: 'found', usable: ['203.0.113.9'] });
  expect(found.kind === 'found' && found.whyNot).toHaveLength(4);
  const allowed = names.addressesOf('in.acme.example', 'acme', spec(['127.0.0.1/32']));
  expect(allowed).toMatchObject({ usable: ['127.0.0.1', '203.0.113.9'] });
});

test('ingress names: one peer has more than 256 -> the rest leads nowhere, until some go; other peers have theirs', async () => {
  const { sim, answers, names, spec } = setUp();
  const all = Array.from({ length: 300 }, (_, index) => `${index}.acme.example`);
  for (const name of [...all, 'in.other.example']) answers.set(name, ['203.0.113.9']);
  for (const name of all) names.follow(name, 'acme', [{ address: name }]);
  names.follow('other', 'other', [{ address: 'in.other.example' }]);
  await sim.time.advance(1000);
  const usable = (name: string, peer: string) => {
    const found = names.addressesOf(name, peer, spec());
    return found.kind === 'found' && found.usable.length;
  };
  expect(all.filter((name) => usable(name, 'acme') === 1)).toHaveLength(256);
  expect(usable('in.other.example', 'other')).toBe(1);
  names.follow(all[0]!, 'acme', []);
  names.follow(all[299]!, 'acme', [{ address: all[299]! }]);
  await sim.time.advance(1000);
  expect([usable(all[0]!, 'acme'), usable(all[299]!, 'acme')]).toEqual([0, 1]);
  names.stop();
});
