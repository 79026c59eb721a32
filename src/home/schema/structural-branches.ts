// allOf, anyOf, oneOf and not in a schema of a definition: the branches may only narrow what is specified outside them.

import type { Pieces } from '../../base/turns.ts';
import { type FieldError, forbidden, required } from '../../kube/objects/field-error.ts';
import { structureKeywords } from './keywords.ts';
import type { Schema } from './schema.ts';
import { checkKeywords, type Examination } from './structural-level.ts';

/** The same place outside of all branches, which must specify everything that a branch names. */
interface Outside {
  readonly schema: Schema | undefined;
  readonly path: string;
}

export function* checkBranches(schema: Schema, outside: Outside, path: string, examination: Examination): Pieces<void> {
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, branch] of schema[keyword]?.entries() ?? []) {
      yield* checkBranch(branch, outside, `${path}.${keyword}[${index}]`, examination);
    }
  }
  if (schema.not !== undefined) yield* checkBranch(schema.not, outside, `${path}.not`, examination);
}

function* checkBranch(branch: Schema, outside: Outside, path: string, examination: Examination): Pieces<void> {
  const { errors } = examination;
  if (examination.isPieceOver(branch)) yield;
  if (!checkKeywords(branch, path, errors)) return;
  for (const keyword of structureKeywords) {
    if (branch[keyword] === undefined || isTypeOfIntOrString(keyword, branch, outside.schema)) continue;
    errors.push(forbidden(`${path}.${keyword}`, 'must be empty to be structural'));
  }
  for (const [name, property] of Object.entries(branch.properties ?? {})) {
    const there = {
      schema: outside.schema?.properties?.[name] ?? valueSchema(outside.schema),
      path: `${outside.path}.properties[${name}]`,
    };
    const here = `${path}.properties[${name}]`;
    if (there.schema === undefined) errors.push(notOutside(outside, there.path, here));
    yield* checkBranch(property, there, here, examination);
  }
  if (branch.items !== undefined) {
    const there = { schema: outside.schema?.items, path: `${outside.path}.items` };
    if (there.schema === undefined) errors.push(notOutside(outside, there.path, `${path}.items`));
    yield* checkBranch(branch.items, there, `${path}.items`, examination);
  }
  yield* checkBranches(branch, outside, path, examination);
}

function valueSchema(schema: Schema | undefined): Schema | undefined {
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

// The one type that a branch may name: anyOf integer and string, which generators write beside int-or-string.
function isTypeOfIntOrString(keyword: string, branch: Schema, around: Schema | undefined): boolean {
  const isEither = branch.type === 'integer' || branch.type === 'string';
  return keyword === 'type' && isEither && around?.['x-kubernetes-int-or-string'] === true;
}

function notOutside({ schema }: Outside, missing: string, path: string): FieldError {
  const reason = schema === undefined ? 'and so must what it lies in' : `because it is defined in ${path}`;
  return required(missing, reason);
}
