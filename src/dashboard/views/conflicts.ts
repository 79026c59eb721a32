// A conflict with the ways out of it: change those that differ, change the one that decides, or take an export back. Pure.

import type { Conflict } from '../../clusterset/rules/merge/merged.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import type { ConflictView } from '../wire/views.ts';

export function conflictView(conflict: Conflict, key: string): ConflictView {
  const { reason, field, winner, value, why, disagreeing, ifWinnerLeft } = conflict;
  return { reason, field, winner, value, why, disagreeing, ifWinnerLeft, waysOut: waysOut(conflict, key) };
}

function waysOut({ field, winner, value, disagreeing }: Conflict, key: string): string[] {
  const { namespace, name } = parseServiceKey(key);
  const edit = `kubectl edit service ${name} -n ${namespace}`;
  const others = disagreeing.map(({ cluster }) => cluster);
  const wanted = [...new Set(disagreeing.map((one) => one.value))];
  return [
    `Keep ${value}: in ${others.join(', ')} change ${field} to ${value} (${edit}).`,
    ...(wanted.length === 1 ? [`Take ${wanted[0]} instead: change it in ${winner} (${edit}).`] : []),
    `Or take the export of ${others.join(', ')} back: portolan unexport ${key}.`,
  ];
}
