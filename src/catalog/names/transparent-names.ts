// A name of the cluster that leads to the service of the clusterset: the name and its ports are those of the import, and what only the
// cluster's own Service has (hosts of its endpoints, reverse names) stays. Pure.

import { recordType } from '../../base/dns/codes.ts';
import { readRouting } from '../../clusterset/rules/routing/routing.ts';
import type { OwnerFacts } from '../facts/facts.ts';
import type { OwnerNames } from './owner-names.ts';

/** Few imports have a routing at all. */
export function isTransparentOwner({ isPresent, routing }: Pick<OwnerFacts, 'isPresent' | 'routing'>): boolean {
  return isPresent && routing !== '' && readRouting(routing).isTransparent === true;
}

/** An import that has no address to give changes nothing. */
export function transparentNames(own: OwnerNames, imported: OwnerNames, name: string): OwnerNames {
  const isAddress = ({ type }: { readonly type: number }) => type === recordType.A || type === recordType.AAAA;
  const leads = (imported.sets.get(name) ?? []).some(isAddress);
  if (!leads && own.sets.size > 0) {
    own.leftOut.push(...imported.leftOut);
    return own;
  }
  for (const [each, sets] of own.sets)
    if (!imported.sets.has(each) && !each.startsWith('_')) for (const set of sets) imported.add(each, set);
  imported.takePointers(own);
  return imported;
}
