// Checks of one value by itself: its type, its enum, and what strings and numbers may be.

import { canonicalJson } from '../../base/json.ts';
import { invalid, notListed, quotedList, tooLong, wrongType } from '../../kube/objects/field-error.ts';
import { formatCheck } from './formats.ts';
import { compilePattern } from './pattern.ts';
import type { Schema } from './schema.ts';
import { type Check, charge, pathOf, report, shown, type Walk } from './walk.ts';

/** Undefined if any type will do. The check says whether the type is right; nothing else is looked at if it is not. */
export function typeCheck(schema: Schema): ((value: unknown, walk: Walk) => boolean) | undefined {
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true;
  if (!isIntOrString && schema.type === undefined) return undefined;
  const wanted = isIntOrString ? 'integer,string' : schema.type!;
  const hasType = isIntOrString ? isIntegerOrString : typeTests[schema.type!];
  return (value, walk) => {
    if (hasType(value)) return true;
    const path = pathOf(walk);
    report(walk, wrongType(path, value, `${path} in body must be of type ${wanted}: ${quotedTypeName(value)}`));
    return false;
  };
}

const typeTests = {
  object: (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value),
  array: (value: unknown) => Array.isArray(value),
  string: (value: unknown) => typeof value === 'string',
  integer: (value: unknown) => typeof value === 'number' && Number.isInteger(value),
  number: (value: unknown) => typeof value === 'number',
  boolean: (value: unknown) => typeof value === 'boolean',
} as const;

function isIntegerOrString(value: unknown): boolean {
  return typeof value === 'string' || (typeof value === 'number' && Number.isInteger(value));
}

function quotedTypeName(value: unknown): string {
  if (value === null) return '"null"';
  if (Array.isArray(value)) return '"array"';
  if (typeof value === 'number') return Number.isInteger(value) ? '"integer"' : '"number"';
  return JSON.stringify(typeof value);
}

export function enumCheck(schema: Schema): Check | undefined {
  if (schema.enum === undefined) return undefined;
  const allowed = new Set(schema.enum.map(canonicalJson));
  const list = quotedList(schema.enum.map((option) => (typeof option === 'string' ? option : JSON.stringify(option))));
  const plain: ReadonlySet<unknown> = new Set(schema.enum);
  return (value, walk) => {
    if (plain.has(value)) return;
    if (!allowed.has(canonicalJson(value))) report(walk, notListed(pathOf(walk), shown(value), list));
  };
}

export function stringChecks(schema: Schema): Check[] {
  const checks = [lengthCheck(schema), patternCheck(schema), stringFormatCheck(schema)];
  return checks.filter((check) => check !== undefined);
}

// Lengths count code points, as Kubernetes does; the cheap length in UTF-16 units decides most cases.
function lengthCheck({ minLength = 0, maxLength }: Schema): Check | undefined {
  if (minLength === 0 && maxLength === undefined) return undefined;
  return (value, walk) => {
    const text = value as string;
    if (maxLength !== undefined && text.length > maxLength && codePoints(text) > maxLength) {
      report(walk, tooLong(pathOf(walk), maxLength));
    }
    if (text.length < minLength * 2 && codePoints(text) < minLength) {
      const path = pathOf(walk);
      report(walk, invalid(path, value, `${path} in body should be at least ${minLength} chars long`));
    }
  };
}

function codePoints(text: string): number {
  let count = text.length;
  for (let at = 0; at + 1 < text.length; at++) {
    if ((text.charCodeAt(at) & 0xfc00) !== 0xd800 || (text.charCodeAt(at + 1) & 0xfc00) !== 0xdc00) continue;
    count--;
    at++;
  }
  return count;
}

/** Cost of a character for any pattern. */
const patternCost = 10;

function patternCheck(schema: Schema): Check | undefined {
  if (schema.pattern === undefined) return undefined;
  const compiled = compilePattern(schema.pattern);
  if (compiled.kind === 'refused') throw new Error(`pattern ${schema.pattern}: ${compiled.reason}`);
  const { pattern, size } = compiled;
  return (value, walk) => {
    const text = value as string;
    charge(walk, (text.length + 1) * (size + patternCost));
    if (pattern.test(text)) return;
    const path = pathOf(walk);
    report(walk, invalid(path, shown(value), `${path} in body should match '${schema.pattern}'`));
  };
}

function stringFormatCheck(schema: Schema): Check | undefined {
  const hasFormat = schema.format === undefined ? undefined : formatCheck(schema.format);
  if (hasFormat === undefined || schema['x-kubernetes-int-or-string'] === true) return undefined;
  return (value, walk) => {
    if (hasFormat(value as string)) return;
    const path = pathOf(walk);
    const text = shown(value);
    const detail = `${path} in body must be of type ${schema.format}: ${JSON.stringify(text)}`;
    report(walk, { ...invalid(path, text, detail), reason: 'FieldValueTypeInvalid' });
  };
}

export function numberChecks(schema: Schema): Check[] {
  const checks = [minimumCheck(schema), maximumCheck(schema), multipleCheck(schema), numberFormatCheck(schema)];
  return checks.filter((check) => check !== undefined);
}

function minimumCheck({ minimum, exclusiveMinimum = false }: Schema): Check | undefined {
  if (minimum === undefined) return undefined;
  const words = exclusiveMinimum ? 'greater than' : 'greater than or equal to';
  const isFine = (value: number) => (exclusiveMinimum ? value > minimum : value >= minimum);
  return numberCheck(isFine, `should be ${words} ${minimum}`);
}

function maximumCheck({ maximum, exclusiveMaximum = false }: Schema): Check | undefined {
  if (maximum === undefined) return undefined;
  const words = exclusiveMaximum ? 'less than' : 'less than or equal to';
  const isFine = (value: number) => (exclusiveMaximum ? value < maximum : value <= maximum);
  return numberCheck(isFine, `should be ${words} ${maximum}`);
}

function multipleCheck({ multipleOf }: Schema): Check | undefined {
  if (multipleOf === undefined) return undefined;
  return numberCheck(
    (value) => Number.isInteger(multipleOf < 1 ? value * (1 / multipleOf) : value / multipleOf),
    `should be a multiple of ${multipleOf}`,
  );
}

// Above 2^53 a number has already been rounded when it was parsed; the bound still holds for what it became.
const integerBounds = new Map([
  ['int32', { min: -(2 ** 31), max: 2 ** 31 - 1 }],
  ['int64', { min: -(2 ** 63), max: 2 ** 63 }],
  ['uint32', { min: 0, max: 2 ** 32 - 1 }],
  ['uint64', { min: 0, max: 2 ** 64 }],
]);

function numberFormatCheck({ format = '' }: Schema): Check | undefined {
  const bounds = integerBounds.get(format);
  if (bounds === undefined) return undefined;
  const isFine = (value: number) => Number.isInteger(value) && value >= bounds.min && value <= bounds.max;
  return numberCheck(isFine, `must be of type integer with format ${format}`);
}

function numberCheck(isFine: (value: number) => boolean, words: string): Check {
  return (value, walk) => {
    if (isFine(value as number)) return;
    const path = pathOf(walk);
    report(walk, invalid(path, value, `${path} in body ${words}`));
  };
}
