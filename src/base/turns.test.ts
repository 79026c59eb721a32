import { describe, expect, test } from 'vitest';
import { inOneGo, inSteps, type Pieces, Turns } from './turns.ts';

/** A clock that moves when work is done, and timers that run when a turn of the event loop ends. */
function world() {
  const due: (() => void)[] = [];
  let nowMs = 0;
  return {
    clock: { wallMs: () => nowMs, monotonicMs: () => nowMs },
    timers: {
      after: (_delayMs: number, run: () => void) => {
        due.push(run);
        return { cancel: () => {} };
      },
    },
    work: (ms: number) => {
      nowMs += ms;
    },
    endTurn: () => {
      for (const run of due.splice(0)) run();
    },
  };
}

describe('turns', () => {
  test('two long pieces of work -> they take turns, and each turn has one piece', async () => {
    const { work, endTurn, ...outside } = world();
    const turns = new Turns(outside);
    const done: string[] = [];
    const job = async (name: string) => {
      for (let piece = 1; piece <= 3; piece++) {
        await turns.next();
        done.push(`${name}${piece}`);
        work(20);
      }
    };
    const jobs = Promise.all([job('a'), job('b')]);
    const seen: string[] = [];
    for (let turn = 0; turn < 6; turn++) {
      for (let step = 0; step < 10; step++) await Promise.resolve();
      seen.push(done.splice(0).join(' '));
      endTurn();
    }
    await jobs;
    expect(seen).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
  });

  test('short pieces -> one turn takes many of them', async () => {
    const { work, ...outside } = world();
    const turns = new Turns(outside);
    let pieces = 0;
    const job = (async () => {
      for (; pieces < 100; pieces++) {
        await turns.next();
        work(0.01);
      }
    })();
    await job;
    expect(pieces).toBe(100);
  });
});

function* countTo(last: number, seen: string[]): Pieces<number> {
  for (let at = 1; at <= last; at++) {
    if (at > 1) yield;
    seen.push(String(at));
  }
  return last;
}

test('pieces: in steps -> one step between two pieces, none after the last; in one go -> no steps', async () => {
  const seen: string[] = [];
  expect(await inSteps(countTo(3, seen), async () => void seen.push('step'))).toBe(3);
  expect(seen).toEqual(['1', 'step', '2', 'step', '3']);
  expect(inOneGo(countTo(3, []))).toBe(3);
});
