import { describe, expect, test } from 'vitest';
import type { MemberState, SetState } from '../../clusterset/explain/set-state.ts';
import type { RecordLayout } from '../../clusterset/kinds/cluster-set.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { setNotes } from './status-notes.ts';

function stateOf(layout: RecordLayout, members: readonly (readonly [id: string, reads?: RecordLayout])[]) {
  const policy = readSetPolicy({ apiVersion: '', kind: '', metadata: { name: 'prod' }, spec: { layout } });
  const states = members.map(([id, reads]) => ({ id, lease: { spec: { reads } } }) as unknown as MemberState);
  return { policy, members: states } satisfies Pick<SetState, 'policy' | 'members'>;
}

const many = (count: number) => Array.from({ length: count }, (_, at) => [`c${at}`, 'AllNamespaces'] as const);

describe('status notes', () => {
  test('status notes: a set of fifty that all read one layout -> none', () => {
    expect(setNotes(stateOf('AllNamespaces', many(50)))).toEqual([]);
    expect(setNotes(stateOf('PerMember', [['east'], ['west']]))).toEqual([]);
  });

  test('status notes: 500 clusters -> the longer lease times and their reason', () => {
    expect(setNotes(stateOf('AllNamespaces', many(500)))).toEqual([
      'leases: renewed every 50s, expired after 2m30s, because there are 500 clusters',
    ]);
  });

  test('status notes: older agents while the set moves -> their names', () => {
    const older = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => [id] as const);
    expect(setNotes(stateOf('AllNamespaces', [...older, ...many(3)]))).toEqual([
      'layout: moving to AllNamespaces, waiting for the agents of a, b, c, d, e and 1 more',
    ]);
  });
});
