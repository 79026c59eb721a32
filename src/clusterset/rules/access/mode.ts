// How far the export of a service is the boundary of calls from other clusters. Pure.

import { type AccessMode, accessModes } from '../../kinds/cluster-set.ts';

export function parseAccessMode(text: unknown): AccessMode | undefined {
  return accessModes.find((mode) => mode === text);
}

export function stricterMode(one: AccessMode, other: AccessMode): AccessMode {
  return accessModes.indexOf(one) < accessModes.indexOf(other) ? other : one;
}
