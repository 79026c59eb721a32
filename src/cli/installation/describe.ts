// An object in words: `Deployment portolan-system/portolan-agent`. Pure.

import type { ResourceType } from '../../kube/objects/object.ts';

export function describe(
  { kind }: Pick<ResourceType, 'kind'>,
  { namespace, name }: { readonly namespace?: string; readonly name: string },
): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}
