// The Secret and ConfigMap kinds.

import { type ConfigMap, configMapType, validateConfigMap } from '../../kube/objects/config-map.ts';
import { applySecretDefaults, type Secret, secretType, validateSecret } from '../../kube/objects/secret.ts';
import { column, nameColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';

export const secretKind: Kind = builtinKind<Secret>({
  ...secretType,
  columns: [
    nameColumn,
    column<Secret>('Type', (secret) => secret.type ?? ''),
    column<Secret>('Data', (secret) => Object.keys(secret.data ?? {}).length, 'integer'),
  ],
  applyDefaults: applySecretDefaults,
  validate: validateSecret,
  selectableFields: { type: (secret) => secret.type ?? '' },
});

export const configMapKind: Kind = builtinKind<ConfigMap>({
  ...configMapType,
  shortNames: ['cm'],
  columns: [nameColumn, column<ConfigMap>('Data', countKeys, 'integer')],
  validate: validateConfigMap,
});

function countKeys({ data = {}, binaryData = {} }: ConfigMap): number {
  return Object.keys(data).length + Object.keys(binaryData).length;
}
