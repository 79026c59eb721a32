// Turns a schema into checks once, so that patterns are compiled and keywords are looked at only when a field is first
// used. A compiled schema gives the same answers forever and may be used concurrently.

import { compositeChecks } from './composite-checks.ts';
import { arrayChecks, objectChecks } from './container-checks.ts';
import { enumCheck, numberChecks, stringChecks, typeCheck } from './scalar-checks.ts';
import type { Schema } from './schema.ts';
import type { Check } from './walk.ts';

export interface CompiledSchema {
  readonly schema: Schema;
  readonly check: Check;
}

/** Its checks throw if a pattern is not one: definitions are validated before they are compiled. */
export function compileSchema(schema: Schema): CompiledSchema {
  return { schema, check: compileCheck(schema) };
}

function compileCheck(schema: Schema): Check {
  const ofType = typeCheck(schema);
  const forAll = [enumCheck(schema), ...compositeChecks(schema, compileCheck)].filter((check) => check !== undefined);
  const forString = stringChecks(schema);
  const forNumber = numberChecks(schema);
  const forArray = arrayChecks(schema, compileCheck);
  const forObject = objectChecks(schema, compileCheck);
  const isNullable = schema.nullable === true;
  return (value, walk) => {
    if (value === null && isNullable) return;
    if (ofType !== undefined && !ofType(value, walk)) return;
    for (const check of forAll) check(value, walk);
    for (const check of applicable(value)) check(value, walk);
  };

  function applicable(value: unknown): readonly Check[] {
    switch (typeof value) {
      case 'string':
        return forString;
      case 'number':
        return forNumber;
      case 'object':
        return value === null ? [] : Array.isArray(value) ? forArray : forObject;
      default:
        return [];
    }
  }
}
