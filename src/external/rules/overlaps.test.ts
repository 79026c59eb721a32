import { describe, expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import { externalService } from '../testing/services.ts';
import { OverlapIndex } from './overlaps.ts';
import { type Rule, rulesOf } from './rule.ts';

const pools = [{ whose: 'external services', range: parseRange('242.0.0.0/8')! }];
const service = (name: string, match: string, more = {}) => externalService(`{ match: [${match}] }`, { name, ...more });

function indexOf(rules: readonly Rule[]): OverlapIndex {
  const index = new OverlapIndex();
  index.add(rules);
  return index;
}

/** As the statuses of all say it, each text once. */
function texts(services: readonly ReturnType<typeof service>[]): string[] {
  const index = indexOf(services.flatMap(rulesOf));
  return [...new Set(services.flatMap((one) => index.textsOf(rulesOf(one), pools)))];
}

describe('overlaps', () => {
  test('overlaps: one range in another -> the words of the seed, the exact range, the winner [004-43]', () => {
    const one = service('external-service1', '{ type: CIDR, value: 10.1.0.0/16, port: 80 }');
    const two = service('external-service2', '{ type: IP, value: 10.1.1.9, port: 80 }');
    const wanted = [
      'external-service1 and external-service2 have overlapping IPs 10.1.1.9, which can disrupt your traffic; external-service2 wins on port 80: it has the longer prefix',
    ];
    expect(texts([one, two])).toEqual(wanted);
    expect(texts([two, one])).toEqual(wanted);
  });

  test('overlaps: the same range -> the older wins', () => {
    const one = service('a', '{ type: CIDR, value: 10.1.1.7/24, port: 80 }');
    const two = service('b', '{ type: CIDR, value: 10.1.1.0/24, port: 80 }', { created: '2025-01-01T00:00:00Z' });
    expect(texts([one, two])[0]).toContain('10.1.1.0/24, which can disrupt your traffic; b wins');
  });

  test('overlaps: other ports, other families, one resource, ranges apart -> none', () => {
    const match = '{ type: CIDR, value: 10.1.1.0/24, port: 80 }';
    expect(texts([service('a', match), service('b', '{ type: IP, value: 10.1.1.1, port: 81 }')])).toEqual([]);
    expect(texts([service('a', `${match}, { type: IP, value: 10.1.1.1, port: 80 }`)])).toEqual([]);
    expect(texts([service('a', match), service('b', '{ type: CIDR, value: 10.1.2.0/24, port: 80 }')])).toEqual([]);
    expect(texts([service('a', match), service('b', '{ type: CIDR, value: "::/0", port: 80 }')])).toEqual([]);
  });

  test.each([
    ['tls', 'http', 0],
    ['http', 'grpc', 0],
    ['tcp', 'http', 1],
    ['http2', 'grpc', 1],
  ])(
    'overlaps: the same address by %s and by %s -> %d: only where one connection can be about both',
    (one, other, count) => {
      const match = (protocol: string) => `{ type: IP, value: 10.1.1.9, port: 80, protocol: ${protocol} }`;
      expect(texts([service('a', match(one)), service('b', match(other))])).toHaveLength(count);
    },
  );

  test('overlaps: a range that holds virtual IPs -> said, virtual IPs win', () => {
    expect(texts([service('a', '{ type: CIDR, value: 242.1.0.0/16, port: 80 }')])).toEqual([
      'a and the address range of external services have overlapping IPs 242.1.0.0/16, which can disrupt your traffic; virtual IPs win',
    ]);
  });

  test('overlaps: two resources share a hostname and a port -> said', () => {
    const vip = (name: string) =>
      service(name, '{ type: InternalVIP, value: m.ext, port: 80 }', { vips: { 'm.ext': '242.0.0.1' } });
    expect(texts([vip('b'), vip('a')])).toEqual([
      'a and b have overlapping IPs 242.0.0.1, which can disrupt your traffic; a wins on port 80: it is older, or comes first by name',
    ]);
  });

  test('overlaps: ranges that came and went in any order -> the same as if only those left had ever come', () => {
    let state = 7;
    const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const pick = (below: number) => Math.floor(random() * below);
    for (let round = 0; round < 40; round += 1) {
      const all = Array.from({ length: 30 }, (_, i) => {
        const cidr = `10.${pick(2)}.${pick(3)}.${pick(4) * 64}/${[8, 16, 24, 26, 32][pick(5)]}`;
        return service(`s${i}`, `{ type: CIDR, value: ${cidr}, port: ${80 + pick(2)} }`, {
          created: `2025-01-0${1 + pick(5)}T00:00:00Z`,
        });
      });
      const index = indexOf([]);
      const left = new Set<(typeof all)[number]>();
      for (let step = 0; step < 90; step += 1) {
        const one = all[pick(all.length)]!;
        if (left.delete(one)) index.remove(rulesOf(one));
        else {
          index.add(rulesOf(one));
          left.add(one);
        }
      }
      const fresh = indexOf([...left].flatMap(rulesOf));
      expect([...index.texts()].sort()).toEqual([...fresh.texts()].sort());
      const mentioned = (name: string) => [...fresh.texts()].filter((text) => text.split(/[ :]/).includes(name)).sort();
      for (const one of left)
        expect(index.textsOf(rulesOf(one), []).sort()).toEqual([...new Set(mentioned(one.metadata.name))]);
    }
  });

  test('overlaps: 50,000 ranges, some in others, and 10,000 equal ones -> found in seconds, bounded', () => {
    const rule = (index: number, cidr: string): Rule => ({
      resource: { origin: 'home', name: `s${index}`, createdMs: index },
      ...{ index: 0, port: 443, protocol: 'tls', match: { kind: 'range', range: parseRange(cidr)! } },
    });
    const many = Array.from({ length: 50_000 }, (_, i) => {
      const length = i % 100 === 0 ? 16 : 28;
      return rule(i, `${10 + (i % 40)}.${(i >> 3) % 256}.${(i >> 7) % 256}.${(i % 16) * 16}/${length}`);
    });
    const startMs = performance.now();
    expect([...indexOf(many).texts()].length).toBeGreaterThan(1000);
    const equal = Array.from({ length: 10_000 }, (_, i) => rule(i, '10.0.0.0/8'));
    expect([...indexOf(equal).texts()].length).toBeLessThan(120_000);
    expect(performance.now() - startMs).toBeLessThan(20_000);
  }, 60_000);
});
