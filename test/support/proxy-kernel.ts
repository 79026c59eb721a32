// Reads the proxy's table in a namespace's kernel, in a form that can be compared, and the nft processes there.

import type { Namespaces, Place } from './namespaces.ts';

/** Process ids of the proxy's long-lived nft. */
export function nftSessionsIn(net: Namespaces, place: Place): number[] {
  return processesIn(net, place, '^nft -i$');
}

/** Of the namespace, by their command line. */
export function processesIn(net: Namespaces, place: Place, pattern: string): number[] {
  const pids = net.run(place, `pgrep -f "${pattern}" || true`).split('\n').filter(Boolean);
  return pids.filter((pid) => net.run(place, `ip netns identify ${pid} || true`).trim() === place.name).map(Number);
}

/**
 * Without what differs from one load to the next: handles, order, the slots of endpoints, clients that stay with an endpoint, and what
 * was counted.
 */
export function comparable(json: string): string[] {
  // On a busy machine other clusters seem farther away for a while, and attempts are waited for longer: the object for that stays.
  const uncounted = json.replaceAll(/"(packets|bytes)": ?\d+/g, '"$1":0').replaceAll(/-after-\d/g, '');
  const { nftables } = JSON.parse(uncounted) as { nftables: Record<string, Record<string, unknown>>[] };
  return nftables
    .filter((object) => !('metainfo' in object || 'ct timeout' in object))
    .flatMap((object) => {
      const [kind, { handle: _handle, elem, ...rest }] = Object.entries(object)[0]!;
      const isKernels =
        /^aff[46]$/.test(String(rest['name'])) || /^portolan-(counts|bytes)$/.test(String(rest['table']));
      const elements = isKernels
        ? []
        : ((elem ?? []) as unknown[]).map((each) => `${rest['name']} ${withoutSlot(String(rest['name']), each)}`);
      return [`${kind} ${JSON.stringify(rest)}`, ...elements];
    })
    .sort();
}

/** An endpoint keeps the slot it was given, so a plan made afresh has the same endpoints in other slots. */
function withoutSlot(map: string, element: unknown): string {
  if (!/^(tcp|udp|sctp|affid)[46]$/.test(map)) return JSON.stringify(element);
  const [key, value] = element as [{ concat: unknown[] }, unknown];
  return JSON.stringify([key.concat.slice(0, -1), value]);
}
