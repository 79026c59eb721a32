// Which schemas a CustomResourceDefinition may bring: structural ones, as Kubernetes defines them for v1. Every level
// has a type, there are no references, and fields in allOf, anyOf, oneOf and not are also specified outside them.

import type { Pieces } from '../../base/turns.ts';
import { type FieldError, forbidden, invalid, required } from '../../kube/objects/field-error.ts';
import { checkListAndMapTypes } from './list-types.ts';
import { patternLengthMax } from './pattern.ts';
import { patternCost } from './pattern-cost.ts';
import type { Schema } from './schema.ts';
import { checkBranches } from './structural-branches.ts';
import { checkDefaults } from './structural-defaults.ts';
import { checkKeywords, Examination } from './structural-level.ts';
import { isDeeperThan, nestingDepthMax, shown } from './walk.ts';

type Place = 'root' | 'property' | 'items';

const missingType: Record<Place, string> = {
  root: 'must not be empty at the root',
  property: 'must not be empty for specified object fields',
  items: 'must not be empty for specified array items',
};

/** Everything that is wrong with a schema; `path` is where it lies in its definition. */
export function* validateStructural(schema: Schema, path: string): Pieces<FieldError[]> {
  if (isDeeperThan(schema, nestingDepthMax)) {
    return [invalid(path, '', `must not be nested more than ${nestingDepthMax} levels deep`)];
  }
  const costs = costsOf(patternsOf(schema));
  if (costs === undefined) {
    return [invalid(path, '', 'must not have so many and such large patterns: they take too long to compile')];
  }
  yield;
  const examination = new Examination(costs);
  checkRoot(schema, path, examination.errors);
  yield* checkLevel(schema, path, 'root', examination);
  // Defaults are held against the schema, so it has to be a sound one first.
  if (examination.errors.length === 0) yield* checkDefaults(schema, path, examination);
  return examination.errors;
}

/** About 20 ms. Patterns that are the same text are compiled once. */
const patternsCostMax = 50_000;

function patternsOf(value: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (typeof value !== 'object' || value === null) return found;
  const { pattern } = value as Schema;
  if (typeof pattern === 'string' && pattern.length <= patternLengthMax) found.add(pattern);
  for (const key in value) patternsOf((value as Record<string, unknown>)[key], found);
  return found;
}

/** Undefined above the bound: the cost of megabytes of patterns would take long to estimate. */
function costsOf(patterns: Iterable<string>): ReadonlyMap<string, number> | undefined {
  const costs = new Map<string, number>();
  let sum = 0;
  for (const pattern of patterns) {
    const cost = patternCost(pattern);
    costs.set(pattern, cost);
    sum += cost;
    if (sum > patternsCostMax) return undefined;
  }
  return costs;
}

function checkRoot(schema: Schema, path: string, errors: FieldError[]): void {
  if (schema.type !== undefined && schema.type !== 'object') {
    errors.push(invalid(`${path}.type`, shown(schema.type), 'must be object at the root'));
  }
  if (schema.nullable === true) errors.push(forbidden(`${path}.nullable`, 'nullable cannot be true at the root'));
  for (const name of ['apiVersion', 'kind'] as const) {
    const type = schema.properties?.[name]?.type;
    if (type !== undefined && type !== 'string') {
      errors.push(invalid(`${path}.properties[${name}].type`, shown(type), 'must be string'));
    }
  }
  checkMetadata(schema.properties?.['metadata'], `${path}.properties[metadata]`, errors);
}

function checkMetadata(metadata: Schema | undefined, path: string, errors: FieldError[]): void {
  if (typeof metadata !== 'object' || metadata === null) return;
  const others = Object.keys(metadata.properties ?? {}).filter((name) => name !== 'name' && name !== 'generateName');
  if (others.length > 0 || metadata.additionalProperties !== undefined) {
    const rule = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
    errors.push(forbidden(path, rule));
  }
}

function* checkLevel(schema: Schema, path: string, place: Place, examination: Examination): Pieces<void> {
  const { errors } = examination;
  if (examination.isPieceOver(schema)) yield;
  if (!checkKeywords(schema, path, errors)) return;
  checkType(schema, path, place, errors);
  checkListAndMapTypes(schema, path, errors);
  const { properties } = schema;
  for (const name in properties) {
    yield* checkLevel(properties[name]!, `${path}.properties[${name}]`, 'property', examination);
  }
  if (schema.items !== undefined) yield* checkLevel(schema.items, `${path}.items`, 'items', examination);
  yield* checkAdditional(schema, path, examination);
  yield* checkBranches(schema, { schema, path }, path, examination);
}

function checkType(schema: Schema, path: string, place: Place, errors: FieldError[]): void {
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true;
  const keepsUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'));
  }
  if (schema.type === undefined && !isIntOrString && (!keepsUnknown || place === 'root')) {
    errors.push(required(`${path}.type`, missingType[place]));
  }
  if (isIntOrString && schema.type !== undefined) {
    const reason = 'must be empty if x-kubernetes-int-or-string is true';
    errors.push(invalid(`${path}.type`, schema.type, reason));
  }
  if (schema.type === 'array' && schema.items === undefined) {
    errors.push(required(`${path}.items`, 'must be specified'));
  }
  checkEmbedded(schema, path, errors);
}

function checkEmbedded(schema: Schema, path: string, errors: FieldError[]): void {
  if (schema['x-kubernetes-embedded-resource'] !== true) return;
  if (schema.type !== 'object') {
    errors.push(invalid(`${path}.type`, schema.type ?? '', 'must be object if x-kubernetes-embedded-resource is true'));
  }
  if (schema.properties === undefined && schema['x-kubernetes-preserve-unknown-fields'] !== true) {
    const rule =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
    errors.push(required(`${path}.properties`, rule));
  }
}

function* checkAdditional(schema: Schema, path: string, examination: Examination): Pieces<void> {
  const { additionalProperties } = schema;
  if (additionalProperties === undefined) return;
  const { errors } = examination;
  const field = `${path}.additionalProperties`;
  if (additionalProperties === false) {
    errors.push(forbidden(field, 'additionalProperties cannot be set to false'));
  } else if (Object.keys(schema.properties ?? {}).length > 0) {
    errors.push(forbidden(field, 'additionalProperties and properties are mutual exclusive'));
  }
  if (typeof additionalProperties === 'object' && additionalProperties !== null) {
    yield* checkLevel(additionalProperties, field, 'property', examination);
  } else if (typeof additionalProperties !== 'boolean') {
    errors.push(invalid(field, shown(additionalProperties), 'must be a schema or true'));
  }
}
