// The Node kind.

import { applyNodeDefaults, type Node, nodeType, validateNode } from '../../kube/objects/node.ts';
import { ageColumn, column, nameColumn, orNone, wideColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';

export const nodeKind: Kind = builtinKind<Node>({
  ...nodeType,
  shortNames: ['no'],
  columns: [
    nameColumn,
    column<Node>('Status', formatStatus),
    column<Node>('Roles', formatRoles),
    ageColumn,
    column<Node>('Version', (node) => node.status?.nodeInfo?.kubeletVersion ?? ''),
    wideColumn<Node>('Internal-IP', (node) => addressOf(node, 'InternalIP')),
    wideColumn<Node>('External-IP', (node) => addressOf(node, 'ExternalIP')),
    wideColumn<Node>('OS-Image', (node) => node.status?.nodeInfo?.osImage || '<unknown>'),
    wideColumn<Node>('Kernel-Version', (node) => node.status?.nodeInfo?.kernelVersion || '<unknown>'),
    wideColumn<Node>('Container-Runtime', (node) => node.status?.nodeInfo?.containerRuntimeVersion || '<unknown>'),
  ],
  applyDefaults: applyNodeDefaults,
  validate: validateNode,
  behaviour: { isMetadataInStatus: true },
  selectableFields: { 'spec.unschedulable': (node) => String(node.spec?.unschedulable ?? false) },
});

function formatStatus(node: Node): string {
  const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready');
  const word = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return node.spec?.unschedulable === true ? `${word},SchedulingDisabled` : word;
}

const rolePrefix = 'node-role.kubernetes.io/';

function formatRoles(node: Node): string {
  const roles = Object.entries(node.metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(rolePrefix) && key !== rolePrefix) return [key.slice(rolePrefix.length)];
    return key === 'kubernetes.io/role' && value !== '' ? [value] : [];
  });
  return orNone([...new Set(roles)].sort().join(','));
}

function addressOf(node: Node, type: string): string {
  return orNone(node.status?.addresses?.find((address) => address.type === type)?.address);
}
