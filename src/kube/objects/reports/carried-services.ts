// Whether the node proxies of a cluster carry the cluster IPs of its own Services, as they report it in their Leases. Pure.

import type { Lease } from '../lease.ts';

/** In the Lease of a node proxy: `true` while it carries them. */
export const carriesServicesAnnotation = 'portolan.dev/carries-services';

/** All of them must: clients on a node whose proxy does not would be let down. */
export function areServicesCarried(livingProxies: readonly Lease[]): boolean {
  return (
    livingProxies.length > 0 &&
    livingProxies.every(({ metadata }) => metadata.annotations?.[carriesServicesAnnotation] === 'true')
  );
}
