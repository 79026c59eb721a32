// The definitions in deploy/crds and the kinds that the embedded server makes of them, each accepted beside those before it;
// and a strict create of an object of such a kind.

import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { inOneGo } from '../../../base/turns.ts';
import type { AnyObject } from '../../../kube/objects/object.ts';
import { customResourceDefinitionKind } from '../../kinds/custom-resource-definition.ts';
import type { Kind } from '../../model/kind.ts';
import { applySchemaDefaults } from '../../schema/defaults.ts';
import { pruneUnknownFields } from '../../schema/prune.ts';
import { validateSchema } from '../../schema/validate.ts';
import { acceptDefinition } from '../accept.ts';
import { loadDefinitions } from '../bundled.ts';
import type { CustomResourceDefinition } from '../definition.ts';
import { kindsFromDefinition } from '../kind-of.ts';

const folder = new URL('../../../../deploy/crds/', import.meta.url);
export const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
export const definitions = loadDefinitions(files.map((name) => readFileSync(new URL(name, folder), 'utf8')));

function accept(object: AnyObject, others: readonly Kind[]): CustomResourceDefinition {
  const { schema } = customResourceDefinitionKind.versions[0]!;
  const { applyDefaults, validateInPieces } = customResourceDefinitionKind.behaviour;
  const copy = structuredClone(object);
  expect(pruneUnknownFields(schema, copy)).toEqual([]);
  applyDefaults!(copy);
  expect([...validateSchema(schema, copy), ...inOneGo(validateInPieces!(copy, undefined))]).toEqual([]);
  const definition = copy as unknown as CustomResourceDefinition;
  definition.status = acceptDefinition(definition, others, '2026-01-01T00:00:00Z');
  return definition;
}

export const kinds: Kind[] = [];
for (const object of definitions) {
  const definition = accept(object, kinds);
  expect(definition.status!.conditions!.map(({ status }) => status)).toEqual(['True', 'True']);
  kinds.push(kindsFromDefinition(definition));
}

export function kindOf(name: string): Kind {
  return kinds.find(({ kind }) => kind === name)!;
}

/** The result of a strict create: the object afterwards, or all its problems. */
export function create(kindName: string, text: string): { object: AnyObject; wrong: string[] } {
  const { schema } = kindOf(kindName).versions[0]!;
  const object = parse(text) as AnyObject;
  const unknown = pruneUnknownFields(schema, object).map((path) => `unknown field ${path}`);
  applySchemaDefaults(schema, object);
  const errors = validateSchema(schema, object).map(({ field, message }) => `${field}: ${message}`);
  return { object, wrong: [...unknown, ...errors] };
}
