// Traces of what a home says, and where a watch is resumed after them.

import { describe, expect, test } from 'vitest';
import { KnownHistory, OtherHistory } from './known-history.ts';

const at = (revision: number, spin = 0) => ({
  type: 'MODIFIED' as const,
  object: { apiVersion: 'v1', kind: 'Top', metadata: { name: 'a', resourceVersion: String(revision) }, spin },
});

type Step = (history: KnownHistory) => void;
const list =
  (revision: number): Step =>
  (history) => {
    history.listBegins();
    history.pagesBegin();
    history.listEnds(String(revision), undefined);
  };
const event =
  (revision: number, spin = 0): Step =>
  (history) => {
    history.watchBegins();
    history.watchIsAnswered();
    history.take(at(revision, spin), undefined);
  };
const brokenWatch: Step = (history) => {
  history.watchBegins();
  history.watchIsAnswered();
  history.stepFailed(false);
};
const endedWatch: Step = (history) => {
  history.watchBegins();
  history.watchIsAnswered();
  history.watchEnds(true);
};

/** Where a watch begins: a revision, and whether it must begin with the last event; or a list. */
function resumed(trace: readonly Step[], proven = -1): string {
  const history = new KnownHistory();
  for (const step of trace) step(history);
  if (history.revision === undefined) return 'list';
  try {
    const from = history.watchBegins() ?? history.resumption(proven);
    return history.isUnproven ? `${from}, unproven` : from;
  } catch (error) {
    if (error instanceof OtherHistory) return 'list';
    throw error;
  }
}

describe('a watch is resumed', () => {
  test.each<[string, readonly Step[], number, string]>([
    ['nothing is known', [], -1, 'list'],
    ['just listed', [list(10)], -1, '10'],
    ['a watch that ended in good order', [list(10), event(12), endedWatch], -1, '12'],
    ['broken before any event, nothing proven', [list(10), brokenWatch], -1, 'list'],
    ['broken before any event, proven as far as the list', [list(10), brokenWatch], 10, '10'],
    ['broken after events, nothing proven', [list(10), event(12), event(14), brokenWatch], -1, '12, unproven'],
    ['broken after the first event', [list(10), event(12), brokenWatch], -1, '10, unproven'],
    ['broken after events, proven up to the last', [list(10), event(12), event(14), brokenWatch], 14, '14'],
    ['broken after events, proven beyond', [list(10), event(12), brokenWatch], 20, '12'],
    ['proven less far than the list', [list(10), brokenWatch], 9, 'list'],
    ['told to doubt', [list(10), (history) => history.doubt()], 10, 'list'],
    ['doubted while it was listed', [(history) => history.doubt(), list(10)], -1, '10'],
    ['refused in good order', [list(10), (history) => history.stepFailed(true)], -1, '10'],
  ])('%s', (_name, trace, proven, expected) => {
    expect(resumed(trace, proven)).toBe(expected);
  });

  test('doubts that came while a list was under way -> it is listed again, as of another history', () => {
    const history = new KnownHistory();
    expect(history.listBegins()).toBe(false);
    history.doubt();
    history.listEnds('10', undefined);
    expect([history.revision, history.listBegins()]).toEqual([undefined, true]);
  });

  test('a doubtful list that failed -> the next is as doubtful', () => {
    const history = new KnownHistory();
    history.doubt();
    const isDoubted = history.listBegins();
    history.listFailed(isDoubted);
    expect([isDoubted, history.listBegins()]).toEqual([true, true]);
  });
});

describe('the first event of an unproven watch', () => {
  function unproven(): KnownHistory {
    const history = new KnownHistory();
    for (const step of [list(10), event(12), event(14, 7), brokenWatch]) step(history);
    expect(history.watchBegins()).toBe(undefined);
    history.resumption(-1);
    return history;
  }

  test('the last one we saw -> the same history, and the copy stands where it stood', () => {
    const history = unproven();
    history.prove(at(14, 7));
    expect([history.isUnproven, history.revision, history.listBegins()]).toEqual([false, '14', false]);
  });

  test.each([
    ['another content', at(14, 8)],
    ['another revision', at(13, 7)],
    ['gone', { ...at(14, 7), type: 'DELETED' as const }],
    ['a bookmark', { ...at(14, 7), type: 'BOOKMARK' as const }],
  ])('%s -> another history, and the next list is doubtful', (_name, first) => {
    const history = unproven();
    expect(() => history.prove(first)).toThrow(OtherHistory);
    expect(history.listBegins()).toBe(true);
  });
});

test.each([
  [0, 100_000_050, false],
  [10, 20, false],
  [10, 100_000_009, false],
  [10, 100_000_010, true],
])('listed at %d, then at %d -> restored from a snapshot: %s', (before, after, expected) => {
  const history = new KnownHistory();
  if (before > 0) history.listEnds(String(before), undefined);
  expect(history.isRestored(String(after))).toBe(expected);
});
