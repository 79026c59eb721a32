// The definitions that a home serves from its first start on. A build reads deploy/crds once and leaves them as JSON,
// because reading YAML is a good part of a start; from the sources they are read as they are.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { yaml } from '../../base/yaml.ts';
import type { AnyObject } from '../../kube/objects/object.ts';

const folder = fileURLToPath(new URL('../../../deploy/crds/', import.meta.url));
/** Written by scripts/build.mjs. */
const built = `${folder}definitions.json`;

export function bundledDefinitions(): AnyObject[] {
  if (existsSync(built)) return JSON.parse(readFileSync(built, 'utf8'));
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  return loadDefinitions(files.sort().map((name) => readFileSync(`${folder}${name}`, 'utf8')));
}

export function loadDefinitions(texts: readonly string[]): AnyObject[] {
  return texts.flatMap((text, index) => documentsOf(text, index).map((value) => asDefinition(value, index)));
}

function documentsOf(text: string, index: number): unknown[] {
  const documents = yaml().parseAllDocuments(text, { version: '1.1', schema: 'core', uniqueKeys: true });
  if (!Array.isArray(documents)) return [];
  return documents.flatMap((document) => {
    const wrong = document.errors[0];
    if (wrong !== undefined)
      throw new Error(`definition file ${index + 1} is not YAML: ${wrong.message}`, { cause: wrong });
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    return value === null || value === undefined ? [] : [value];
  });
}

function asDefinition(value: unknown, index: number): AnyObject {
  const object = value as Partial<AnyObject>;
  if (object.kind !== 'CustomResourceDefinition' || object.apiVersion !== 'apiextensions.k8s.io/v1') {
    const found = `${object.apiVersion ?? 'no apiVersion'} ${object.kind ?? 'no kind'}`;
    throw new Error(
      `definition file ${index + 1} holds ${found}; only apiextensions.k8s.io/v1 CustomResourceDefinition is read`,
    );
  }
  return object as AnyObject;
}
