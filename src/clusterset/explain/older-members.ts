// Members whose agents know no networks, by what they say in their leases. Pure.

import { knowsNetworks } from '../rules/networks/known-by.ts';
import type { SetState } from './set-state.ts';

export function olderMembers({ members }: Pick<SetState, 'members'>): Set<string> {
  return new Set(members.filter(({ lease }) => lease !== undefined && !knowsNetworks(lease)).map(({ id }) => id));
}
