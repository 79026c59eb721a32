import { describe, expect, test } from 'vitest';
import { probeDueMs, stepVerdict, unknownVerdict, type Verdict } from './endpoint-verdict.ts';

/** `500 t3` three tried, `a` answered, `r` refused, `ok` and `no` a probe; each with its time. */
interface Setting {
  readonly rttMs?: number | 'unknown';
  readonly knows?: boolean;
  readonly from?: Verdict;
}

function run(lines: string, { rttMs = 10, knows = true, from = unknownVerdict }: Setting = {}): Verdict {
  let verdict = from;
  for (const line of lines.split(',')) {
    const [ms, ...sights] = line.trim().split(' ');
    const circumstances = {
      nowMs: Number(ms),
      rttMs: rttMs === 'unknown' ? undefined : rttMs,
      hasAnsweredProbe: knows,
    };
    for (const sight of sights) {
      if (sight === 'ok' || sight === 'no')
        verdict = stepVerdict(verdict, { kind: 'probed', isAnswered: sight === 'ok' }, circumstances);
      else if (sight === 'ask') verdict = stepVerdict(verdict, { kind: 'asked' }, circumstances);
      else {
        const of = (mark: string) => Number(new RegExp(`${mark}(\\d+)`).exec(sight)?.[1] ?? 0);
        verdict = stepVerdict(
          verdict,
          { kind: 'counted', tried: of('t'), answered: of('a'), refused: of('r') },
          circumstances,
        );
      }
    }
  }
  return verdict;
}

describe('endpoint verdict', () => {
  test('tried, not answered, and the probe fails -> silent; the probe is answered -> it answers', () => {
    expect(run('500 t3').kind).toBe('suspected');
    expect(probeDueMs(run('500 t3'))).toBe(500);
    expect(run('500 t3 ask, 1200 no').kind).toBe('silent');
    expect(run('500 t3 ask, 510 ok').kind).toBe('answers');
  });

  test('tried for a minute, and no probe of this node has ended -> suspected, not left', () => {
    const looks = Array.from({ length: 120 }, (_, index) => `${500 * index} t3r1`).join(', ');
    expect(run(looks).kind).toBe('suspected');
  });

  test('a Pod that is forbidden goes on trying -> a probe a second, never silent', () => {
    let verdict = unknownVerdict;
    let probes = 0;
    for (let ms = 0; ms < 60_000; ms += 500) {
      verdict = run(`${ms} t2`, { from: verdict });
      if (probeDueMs(verdict) === undefined) continue;
      probes += 1;
      verdict = run(`${ms} ask ok`, { from: verdict });
      expect(verdict.kind).toBe('answers');
    }
    expect(probes).toBeLessThanOrEqual(60);
  });

  test('an answer at any time -> it answers, whatever probes show', () => {
    expect(run('500 t3 ask, 900 t1a1, 1200 no', { knows: false }).kind).toBe('answers');
    expect(run('500 t3 ask, 1200 no, 1500 t1a1').kind).toBe('answers');
  });

  test('refused -> silent with the first failed probe; only unanswered -> not before an answer could have come', () => {
    expect(run('500 t3r3 ask no').kind).toBe('silent');
    expect(run('500 t3 ask no', { rttMs: 700 }).kind).toBe('suspected');
    expect(run('500 t3 ask no, 1000 t1', { rttMs: 700 }).kind).toBe('suspected');
    expect(run('500 t3 ask no, 1300 t1', { rttMs: 700 }).kind).toBe('silent');
    expect(run('500 t3 ask no, 1500 t1', { rttMs: 'unknown' }).kind).toBe('suspected');
    expect(run('500 t3 ask no, 2000 t1', { rttMs: 'unknown' }).kind).toBe('silent');
  });

  test('probes alone -> two of them, and only where one was answered before', () => {
    expect(run('500 no').kind).toBe('suspected');
    expect(run('500 no, 600 no').kind).toBe('silent');
    expect(run('500 no, 600 no, 700 no', { knows: false }).kind).toBe('answers');
  });

  test('silent -> tried again after 1, 2, 4 s up to 30; soon silent again -> goes on from there', () => {
    let verdict = run('0 t1r1 ask no');
    const waits: number[] = [];
    for (let nowMs = 0; waits.length < 7; ) {
      const dueMs = probeDueMs(verdict)!;
      waits.push(dueMs - nowMs);
      nowMs = dueMs;
      verdict = run(`${nowMs} ask no`, { from: verdict });
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    const once = run('0 t1r1 ask no, 1000 ask no, 3000 ask ok, 10000 t1r1 ask no');
    expect(probeDueMs(once)! - 10_000).toBe(4000);
    const later = run('0 t1r1 ask no, 1000 ask no, 3000 ask ok, 90000 t1r1 ask no');
    expect(probeDueMs(later)! - 90_000).toBe(1000);
  });

  test('one that has never answered a probe -> gets connections again after a minute; one that has -> only after an answer', () => {
    const start = '0 t1r1 ask no';
    expect(run(`${start}, 59000 t0`, { knows: false }).kind).toBe('silent');
    expect(run(`${start}, 60000 t0`, { knows: false }).kind).toBe('answers');
    expect(run(`${start}, 600000 t0`).kind).toBe('silent');
  });
});
