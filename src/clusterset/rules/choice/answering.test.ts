import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { leaveSilent } from './answering.ts';

interface Endpoint {
  readonly cluster: string;
  readonly name: string;
  readonly via?: string;
}

/** `east+` has answered lately, `east-3` is silent since 3, `east` is unknown, `east>` lies behind a gateway. */
function left(text: string): string[] {
  const endpoints = text.split(' ').map((name, index) => {
    const [, cluster, mark, since] = /^([a-z]+)([+>-]?)(\d*)$/.exec(name)!;
    return {
      cluster: cluster!,
      name: `${name}#${index}`,
      mark,
      since: Number(since),
      ...(mark === '>' && { via: cluster! }),
    };
  });
  const { kept, left: gone } = leaveSilent(endpoints, {
    silentSinceMs: ({ mark, since }) => (mark === '-' ? since : undefined),
    hasAnsweredLately: ({ mark }) => mark === '+',
  });
  expect(kept.length + gone.length).toBe(endpoints.length);
  return gone.map(({ endpoint }) => endpoint.name);
}

describe('answering', () => {
  test.each([
    ['one of two', 'east+ east-1', ['east-1#1']],
    ['one of three, two silent -> the longest silent one', 'east-5 east-2 east+', ['east-2#1']],
    ['a whole cluster, another answered', 'east-1 east-2 west+', ['east-1#0', 'east-2#1']],
    ['a whole cluster, another is unknown -> nobody', 'east-1 east-2 west', []],
    ['a whole cluster, the other lies behind a gateway that answers', 'east-1 west>', ['east-1#0']],
    ['everything is silent -> nobody: never the last', 'east-1 west-2', []],
    ['the only endpoint', 'east-1', []],
    ['the only endpoint of one cluster, one of two of the other', 'east-1 west+ west-4', ['east-1#0', 'west-4#2']],
    ['nothing is silent', 'east west+', []],
  ])('%s', (_title, text, expected) => expect(left(text)).toEqual(expected));

  test('nobody looks -> all are kept, the same list', () => {
    const all: Endpoint[] = [{ cluster: 'east', name: 'a' }];
    expect(leaveSilent(all, undefined).kept).toBe(all);
  });

  test('random sets -> never the last, singly at most half of a cluster, whole clusters only beside an answer', () => {
    const endpoint = fc.record({
      cluster: fc.constantFrom('east', 'west', 'south'),
      silent: fc.boolean(),
      answered: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(endpoint, { minLength: 1, maxLength: 9 }), (all) => {
        const { kept, left: gone } = leaveSilent(all, {
          silentSinceMs: ({ silent }) => (silent ? 1 : undefined),
          hasAnsweredLately: ({ answered }) => answered,
        });
        expect(kept.length).toBeGreaterThan(0);
        expect(gone.every(({ endpoint: each }) => each.silent)).toBe(true);
        for (const [cluster, some] of Map.groupBy(all, (each) => each.cluster)) {
          const count = gone.filter((each) => each.endpoint.cluster === cluster).length;
          if (count < some.length) expect(count).toBeLessThanOrEqual(some.length / 2);
          else expect(all.some((each) => each.cluster !== cluster && each.answered && !each.silent)).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
