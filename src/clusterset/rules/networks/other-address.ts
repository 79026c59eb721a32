// Whether a cluster has another clusterset address for a service than the reader. A stream between networks names its service
// by the reader's address: such a cluster would refuse it, or that address would be another service's there. Its gateway is
// asked by name. Pure.

import { parseIp } from '../../../base/net/ip.ts';

/** Compares one family, or all if it is left out. False while the other cluster has published no address of that family. */
export function hasOtherAddress(
  ours: readonly string[] | undefined,
  theirs: readonly string[] | null | undefined,
  family?: string,
): boolean {
  const known = Array.isArray(theirs) ? theirs.map(parsed) : [];
  return (ours ?? []).map(parsed).some((own) => {
    if (own === undefined || (family !== undefined && own.family !== family)) return false;
    const same = known.filter((ip) => ip?.family === own.family);
    return same.length > 0 && !same.some((ip) => ip?.value === own.value);
  });
}

function parsed(text: unknown) {
  return typeof text === 'string' ? parseIp(text) : undefined;
}
