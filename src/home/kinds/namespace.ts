// The Namespace kind. The emptying controller is named in the spec.finalizers of a deleted one; only that controller, and
// those who may write the subresource `finalize`, remove its entry.

import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { column, nameColumn } from '../model/columns.ts';
import type { Admission, Kind } from '../model/kind.ts';
import { StatusError } from '../model/status.ts';
import { builtinKind } from './builtin.ts';

const namespaceFinalizer = 'kubernetes';
const namespaceNameLabel = 'kubernetes.io/metadata.name';

const undeletable: readonly string[] = ['default', 'kube-system', 'kube-public'];

export const namespaceKind: Kind = builtinKind<Namespace>({
  ...namespaceType,
  shortNames: ['ns'],
  nameRule: 'dnsLabel',
  columns: [nameColumn, column<Namespace>('Status', phaseOf)],
  applyDefaults: (namespace) => {
    namespace.metadata.labels = { ...namespace.metadata.labels, [namespaceNameLabel]: namespace.metadata.name };
    namespace.status ??= {};
    namespace.status.phase ??= 'Active';
  },
  selectableFields: { 'status.phase': phaseOf },
  behaviour: {
    isMetadataInStatus: true,
    admit: async (admission) => admitNamespace(admission),
    finalize: (stored, wanted) => {
      setFinalizers(stored, finalizersOf(wanted));
      return stored;
    },
  },
});

function phaseOf(namespace: Namespace): string {
  return namespace.status?.phase ?? 'Active';
}

function admitNamespace({ operation, subresource, object, previous }: Admission): void {
  if (operation === 'update' && subresource === 'finalize') return;
  if (operation === 'delete') refuseIfNeeded(object.metadata.name);
  else if (operation === 'create') setFinalizers(object, [...new Set([...finalizersOf(object), namespaceFinalizer])]);
  // A replace need not repeat them; once it is being deleted, they go one by one.
  else if (previous?.metadata.deletionTimestamp === undefined) setFinalizers(object, finalizersOf(previous));
}

function refuseIfNeeded(name: string): void {
  if (!undeletable.includes(name)) return;
  const message = `namespaces ${JSON.stringify(name)} is forbidden: this namespace may not be deleted`;
  throw new StatusError('Forbidden', message, { details: { name, kind: 'namespaces' } });
}

function finalizersOf(namespace: AnyObject | undefined): string[] {
  return (namespace?.['spec'] as { finalizers?: string[] } | undefined)?.finalizers ?? [];
}

function setFinalizers(namespace: AnyObject, finalizers: readonly string[]): void {
  namespace['spec'] = { ...(namespace['spec'] as object | undefined), finalizers };
}
