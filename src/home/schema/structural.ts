// Which schemas a CustomResourceDefinition may bring: structural ones, as Kubernetes defines them for v1. Every level
// has a type, there are no references, and fields in allOf, anyOf, oneOf and not are also specified outside them.

import { type FieldError, forbidden, invalid, required } from '../../kube/objects/field-error.ts';
import { compileSchema } from './compile.ts';
import { forbiddenKeywords, keywordSchema, structureKeywords } from './keywords.ts';
import { checkListAndMapTypes } from './list-types.ts';
import { compilePattern, patternLengthMax } from './pattern.ts';
import { patternCost } from './pattern-cost.ts';
import { pruneUnknownFields } from './prune.ts';
import type { Schema } from './schema.ts';
import { validateSchema } from './validate.ts';
import { isDeeperThan, nestingDepthMax, shown } from './walk.ts';

type Place = 'root' | 'property' | 'items';

const keywords = compileSchema(keywordSchema);

const missingType: Record<Place, string> = {
  root: 'must not be empty at the root',
  property: 'must not be empty for specified object fields',
  items: 'must not be empty for specified array items',
};

/** Everything that is wrong with a schema; `path` is where it lies in its definition. */
export function validateStructural(schema: Schema, path: string): FieldError[] {
  if (isDeeperThan(schema, nestingDepthMax)) {
    return [invalid(path, '', `must not be nested more than ${nestingDepthMax} levels deep`)];
  }
  if (sumOf(patternsOf(schema), patternCost) > patternsCostMax) {
    return [invalid(path, '', 'must not have so many and such large patterns: they take too long to compile')];
  }
  const errors: FieldError[] = [];
  checkRoot(schema, path, errors);
  checkLevel(schema, path, 'root', errors);
  // Defaults are held against the schema, so it has to be a sound one first.
  if (errors.length === 0) checkDefaults(schema, path, errors);
  return errors;
}

/** About 20 ms. Patterns that are the same text are compiled once. */
const patternsCostMax = 50_000;

function patternsOf(value: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (typeof value !== 'object' || value === null) return found;
  const { pattern } = value as Schema;
  if (typeof pattern === 'string' && pattern.length <= patternLengthMax) found.add(pattern);
  for (const member of Object.values(value)) patternsOf(member, found);
  return found;
}

function sumOf(texts: Iterable<string>, cost: (text: string) => number): number {
  let sum = 0;
  for (const text of texts) sum += cost(text);
  return sum;
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

function checkLevel(schema: Schema, path: string, place: Place, errors: FieldError[]): void {
  if (!checkKeywords(schema, path, errors)) return;
  checkType(schema, path, place, errors);
  checkListAndMapTypes(schema, path, errors);
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    checkLevel(property, `${path}.properties[${name}]`, 'property', errors);
  }
  if (schema.items !== undefined) checkLevel(schema.items, `${path}.items`, 'items', errors);
  checkAdditional(schema, path, errors);
  checkBranches(schema, schema, path, errors);
}

/** False if the schema cannot be looked at any further. */
function checkKeywords(schema: Schema, path: string, errors: FieldError[]): boolean {
  for (const keyword of Object.keys(schema)) {
    const reason = forbiddenKeywords.get(keyword);
    if (reason !== undefined) errors.push(forbidden(`${path}.${keyword}`, reason));
    else if (!Object.hasOwn(keywordSchema.properties!, keyword)) {
      errors.push(forbidden(`${path}.${keyword}`, 'no such keyword in a structural schema'));
    }
  }
  const wrong = validateSchema(keywords, schema, path);
  errors.push(...wrong);
  if (wrong.length > 0) return false;
  checkPattern(schema, path, errors);
  if (schema.uniqueItems === true) {
    const reason = 'takes time quadratic in the length; x-kubernetes-list-type: set does the same';
    errors.push(forbidden(`${path}.uniqueItems`, reason));
  }
  return true;
}

function checkPattern({ pattern }: Schema, path: string, errors: FieldError[]): void {
  if (pattern === undefined) return;
  const compiled = compilePattern(pattern);
  if (compiled.kind === 'compiled') return;
  errors.push(invalid(`${path}.pattern`, shown(pattern), `must be a valid regular expression: ${compiled.reason}`));
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

function checkAdditional(schema: Schema, path: string, errors: FieldError[]): void {
  const { additionalProperties } = schema;
  if (additionalProperties === undefined) return;
  const field = `${path}.additionalProperties`;
  if (additionalProperties === false) {
    errors.push(forbidden(field, 'additionalProperties cannot be set to false'));
  } else if (Object.keys(schema.properties ?? {}).length > 0) {
    errors.push(forbidden(field, 'additionalProperties and properties are mutual exclusive'));
  }
  if (typeof additionalProperties === 'object' && additionalProperties !== null) {
    checkLevel(additionalProperties, field, 'property', errors);
  } else if (typeof additionalProperties !== 'boolean') {
    errors.push(invalid(field, shown(additionalProperties), 'must be a schema or true'));
  }
}

/** `around` is the schema outside of all branches, which must specify whatever a branch speaks of. */
function checkBranches(schema: Schema, around: Schema | undefined, path: string, errors: FieldError[]): void {
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    schema[keyword]?.forEach((branch, index) => {
      checkBranch(branch, around, `${path}.${keyword}[${index}]`, errors);
    });
  }
  if (schema.not !== undefined) checkBranch(schema.not, around, `${path}.not`, errors);
}

function checkBranch(branch: Schema, around: Schema | undefined, path: string, errors: FieldError[]): void {
  if (!checkKeywords(branch, path, errors)) return;
  for (const keyword of structureKeywords) {
    if (branch[keyword] === undefined || isTypeOfIntOrString(keyword, branch, around)) continue;
    errors.push(forbidden(`${path}.${keyword}`, 'must be empty to be structural'));
  }
  for (const [name, property] of Object.entries(branch.properties ?? {})) {
    const outside = around?.properties?.[name] ?? valueSchema(around);
    if (outside === undefined) errors.push(notOutside(around, path, `properties[${name}]`));
    checkBranch(property, outside, `${path}.properties[${name}]`, errors);
  }
  if (branch.items !== undefined) {
    if (around?.items === undefined) errors.push(notOutside(around, path, 'items'));
    checkBranch(branch.items, around?.items, `${path}.items`, errors);
  }
  checkBranches(branch, around, path, errors);
}

function valueSchema(schema: Schema | undefined): Schema | undefined {
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

// The one type that a branch may name: anyOf integer and string, which generators write beside int-or-string.
function isTypeOfIntOrString(keyword: string, branch: Schema, around: Schema | undefined): boolean {
  const isEither = branch.type === 'integer' || branch.type === 'string';
  return keyword === 'type' && isEither && around?.['x-kubernetes-int-or-string'] === true;
}

function notOutside(around: Schema | undefined, path: string, what: string): FieldError {
  const outer = path.replace(/(\.(allOf|anyOf|oneOf)\[\d+\]|\.not).*$/, '');
  const reason = around === undefined ? 'and so must what it lies in' : `because it is defined in ${path}.${what}`;
  return required(`${outer}.${what}`, reason);
}

/** For a schema that is sound otherwise. */
export function checkDefaults(schema: Schema, path: string, errors: FieldError[], isInMetadata = false): void {
  if (schema.default !== undefined) {
    if (isInMetadata) errors.push(forbidden(`${path}.default`, 'must not be set in metadata'));
    else checkDefault(schema, `${path}.default`, errors);
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const isMetadata = isInMetadata || (name === 'metadata' && isResource(schema, path));
    checkDefaults(property, `${path}.properties[${name}]`, errors, isMetadata);
  }
  if (schema.items !== undefined) checkDefaults(schema.items, `${path}.items`, errors, isInMetadata);
  if (typeof schema.additionalProperties === 'object') {
    checkDefaults(schema.additionalProperties, `${path}.additionalProperties`, errors, isInMetadata);
  }
}

function isResource(schema: Schema, path: string): boolean {
  return path.endsWith('openAPIV3Schema') || schema['x-kubernetes-embedded-resource'] === true;
}

function checkDefault(schema: Schema, field: string, errors: FieldError[]): void {
  const value = structuredClone(schema.default);
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const unknown = pruneUnknownFields(schema, value, { isRoot: isEmbedded });
  if (unknown.length > 0) {
    errors.push(invalid(field, shown(schema.default), `must not have unknown fields: ${unknown.join(', ')}`));
  }
  // As Kubernetes does, without the defaults inside it: `default: {}` does not satisfy what is required there.
  errors.push(...validateSchema(schema, schema.default, field));
}
