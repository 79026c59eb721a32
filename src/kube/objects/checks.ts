// Small checks that several kinds share: each adds what it finds to the list of errors it is given.

import type { TextRule } from '../../base/dns/labels.ts';
import { isSameJson } from '../../base/json.ts';
import { duplicate, type FieldError, invalid, notSupported, required } from './field-error.ts';
import { isLabelValue, isQualifiedName } from './names.ts';

export function checkText(errors: FieldError[], field: string, text: string, rule: TextRule): void {
  for (const why of rule(text)) errors.push(invalid(field, text, why));
}

/** Missing and empty are the same mistake; anything else must follow the rule. */
export function checkRequiredText(errors: FieldError[], field: string, text: string | undefined, rule: TextRule): void {
  if (text === undefined || text === '') errors.push(required(field));
  else checkText(errors, field, text, rule);
}

export function checkOneOf(
  errors: FieldError[],
  field: string,
  value: string | undefined,
  supported: readonly string[],
): void {
  if (value !== undefined && !supported.includes(value)) errors.push(notSupported(field, value, supported));
}

export function checkPortNumber(errors: FieldError[], field: string, port: number): void {
  if (port < 1 || port > 65535) errors.push(invalid(field, port, 'must be between 1 and 65535, inclusive'));
}

export function checkNotNegative(errors: FieldError[], field: string, value: number | undefined): void {
  if (value !== undefined && value < 0) errors.push(invalid(field, value, 'must be greater than or equal to 0'));
}

export function checkLabels(
  errors: FieldError[],
  field: string,
  labels: Readonly<Record<string, string>> | undefined,
): void {
  for (const [key, value] of Object.entries(labels ?? {})) {
    checkText(errors, field, key, isQualifiedName);
    checkText(errors, field, value, isLabelValue);
  }
}

export function checkUnique<T>(
  errors: FieldError[],
  items: readonly T[],
  identity: { readonly of: (item: T) => string | undefined; readonly field: (index: number) => string },
): void {
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    const text = identity.of(item);
    if (text === undefined) continue;
    if (seen.has(text)) errors.push(duplicate(identity.field(index), text));
    seen.add(text);
  }
}

export function checkUnchanged(errors: FieldError[], field: string, now: unknown, before: unknown): void {
  if (!isSameJson(now, before)) errors.push(invalid(field, now ?? '', 'field is immutable'));
}
