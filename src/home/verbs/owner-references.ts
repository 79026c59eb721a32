// Owner references that hold up a deletion. One to a cluster-scoped owner needs a right there: whoever may set the finalizers of
// the owner can hold it up anyway. Owners in the same namespace are left to the rights in that namespace.

import { type AnyObject, type OwnerReference, parseApiVersion } from '../../kube/objects/object.ts';
import type { Call, Engine } from '../model/call.ts';
import { forbidden } from '../model/status-errors.ts';

/** Throws StatusError Forbidden. */
export function refuseForeignBlocks(
  engine: Pick<Engine, 'registry'>,
  call: Pick<Call, 'may' | 'user'>,
  { object, previous }: { readonly object: AnyObject; readonly previous: AnyObject | undefined },
): void {
  const before = new Set(blocksOf(previous).map(identityOf));
  for (const owner of blocksOf(object)) {
    if (before.has(identityOf(owner))) continue;
    const { group } = parseApiVersion(owner.apiVersion);
    const served = engine.registry.findKind(group, owner.kind);
    if (served === undefined || served.kind.isNamespaced) continue;
    const attributes = {
      ...{ verb: 'update', group, version: served.version.name, resource: served.kind.plural },
      ...{ subresource: 'finalizers', namespace: '', name: owner.name },
    };
    if (!call.may(attributes)) throw forbidden(call.user, attributes, 'blockOwnerDeletion holds up its deletion');
  }
}

function blocksOf(object: AnyObject | undefined): OwnerReference[] {
  return (object?.metadata.ownerReferences ?? []).filter(({ blockOwnerDeletion }) => blockOwnerDeletion === true);
}

function identityOf({ apiVersion, kind, name, uid }: OwnerReference): string {
  return JSON.stringify([apiVersion, kind, name, uid]);
}

/** Whether a reference names this very object: a uid under another name or kind reaches nobody. */
export function isReferenceTo(owner: AnyObject, reference: OwnerReference): boolean {
  const { name, uid } = owner.metadata;
  const isSameKind =
    reference.kind === owner.kind &&
    parseApiVersion(reference.apiVersion).group === parseApiVersion(owner.apiVersion).group;
  return reference.uid === uid && reference.name === name && isSameKind;
}
