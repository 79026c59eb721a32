// Whether a member's agent knows networks, as it says in its lease: agents of earlier releases would dial the addresses of
// other networks. An annotation, because each renewal replaces all of them: one that went back to an earlier release says
// nothing any more. Pure.

import type { KubernetesObject } from '../../../kube/objects/object.ts';

const featuresAnnotation = 'portolan.dev/features';
const feature = 'networks';

export function featureAnnotations(): Record<string, string> {
  return { [featuresAnnotation]: feature };
}

export function knowsNetworks(lease: KubernetesObject | undefined): boolean {
  return (lease?.metadata.annotations?.[featuresAnnotation] ?? '').split(',').includes(feature);
}

/** Why no cluster can be put into this network now. */
export function olderAgentsText(network: string, older: readonly string[]): string {
  return `network ${network}: the agents of ${older.join(', ')} are of a release that knows no networks and would connect to addresses of another network; upgrade them first`;
}
