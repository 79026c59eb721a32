// Says everything that is wrong with a value under its schema. Pure; the value is not changed.

import type { FieldError } from '../../kube/objects/field-error.ts';
import { type CompiledSchema, compileSchema } from './compile.ts';
import type { Schema } from './schema.ts';
import { isDeeperThan, nestingDepthMax, TooCostlyError, workMax } from './walk.ts';

/** A schema used more than once should be compiled once. `path` is where the value lies; empty for a whole object. */
export function validateSchema(schema: CompiledSchema | Schema, value: unknown, path = ''): FieldError[] {
  if (isDeeperThan(value, nestingDepthMax)) return [tooDeep(path)];
  return validateShallow(isCompiled(schema) ? schema : compileSchema(schema), value, path);
}

/** For a value that is known not to nest too deep. Values that are checked in one go may share their budget. */
export function validateShallow(
  { check }: CompiledSchema,
  value: unknown,
  path: string,
  work = { left: workMax },
): FieldError[] {
  const errors: FieldError[] = [];
  try {
    check(value, { root: path, path: [], errors, work });
  } catch (error) {
    if (error instanceof TooCostlyError) return [tooCostly(path)];
    throw error;
  }
  return errors;
}

function isCompiled(schema: CompiledSchema | Schema): schema is CompiledSchema {
  return 'check' in schema && typeof schema.check === 'function';
}

function tooCostly(field: string): FieldError {
  return {
    reason: 'FieldValueInvalid',
    field,
    message: 'Invalid value: "": the patterns and choices of the schema take too long on an object of this size',
  };
}

function tooDeep(field: string): FieldError {
  return {
    reason: 'FieldValueInvalid',
    field,
    message: `Invalid value: "": must not be nested more than ${nestingDepthMax} levels deep`,
  };
}
