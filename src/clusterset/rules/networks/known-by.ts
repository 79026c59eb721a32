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
