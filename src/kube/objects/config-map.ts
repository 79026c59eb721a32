// The Kubernetes ConfigMap: settings as text, or as bytes in base64.

import { checkText } from './checks.ts';
import { type FieldError, invalid, tooLong } from './field-error.ts';
import { isConfigKey } from './names.ts';
import type { KubernetesObject, ResourceType } from './object.ts';
import { checkFrozen, dataBytesMax } from './secret.ts';

export const configMapType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
};

export interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
  /** Base64. */
  binaryData?: Record<string, string>;
  immutable?: boolean;
}

export function validateConfigMap(configMap: ConfigMap, previous: ConfigMap | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const { data = {}, binaryData = {} } = configMap;
  let bytes = 0;
  for (const [key, value] of Object.entries(data)) {
    checkText(errors, `data[${key}]`, key, isConfigKey);
    if (Object.hasOwn(binaryData, key))
      errors.push(invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'));
    bytes += Buffer.byteLength(value);
  }
  for (const [key, value] of Object.entries(binaryData)) {
    checkText(errors, `binaryData[${key}]`, key, isConfigKey);
    bytes += Buffer.byteLength(value, 'base64');
  }
  if (bytes > dataBytesMax) errors.push(tooLong('', dataBytesMax));
  if (previous?.immutable === true) checkFrozen(errors, configMap, previous, ['data', 'binaryData']);
  return errors;
}
