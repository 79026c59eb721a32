import { describe, expect, test } from 'vitest';
import type { MemberState, SetState } from '../../clusterset/explain/set-state.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { setNotes } from './status-notes.ts';

function setOf(count: number): Pick<SetState, 'policy' | 'members'> {
  const members = Array.from({ length: count }, (_, at) => ({ id: `c${at}` }) as MemberState);
  return { policy: readSetPolicy(undefined), members };
}

describe('status notes', () => {
  test('status notes: a set of fifty -> none', () => {
    expect(setNotes(setOf(50))).toEqual([]);
  });

  test('status notes: 500 clusters -> the longer lease times and their reason', () => {
    expect(setNotes(setOf(500))).toEqual([
      'leases: renewed every 50s, expired after 2m30s, because there are 500 clusters',
    ]);
  });
});
