// One thing that is wrong with one field. Validation collects them all before anything is refused.

type FieldErrorReason =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid';

export interface FieldError {
  readonly reason: FieldErrorReason;
  /** As Kubernetes writes it: `spec.ports[0].port`, `metadata.labels[app]`. */
  readonly field: string;
  /** As Kubernetes writes it, without the field: `Invalid value: 70000: must be between 1 and 65535, inclusive`. */
  readonly message: string;
}

export function required(field: string, detail = ''): FieldError {
  return {
    reason: 'FieldValueRequired',
    field,
    message: detail === '' ? 'Required value' : `Required value: ${detail}`,
  };
}

export function invalid(field: string, value: unknown, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${JSON.stringify(value)}: ${detail}` };
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  return notListed(field, value, quotedList(supported));
}

/** The same with a list that was written once, for many values. */
export function notListed(field: string, value: unknown, list: string): FieldError {
  return {
    reason: 'FieldValueNotSupported',
    field,
    message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${list}`,
  };
}

/** More than a person reads. */
const listLengthMax = 4096;

export function quotedList(texts: readonly string[]): string {
  let list = '';
  for (const [index, text] of texts.entries()) {
    const next = `${index === 0 ? '' : ', '}${JSON.stringify(text)}`;
    if (list.length + next.length > listLengthMax) return `${list} and ${texts.length - index} more`;
    list += next;
  }
  return list;
}

export function forbidden(field: string, detail: string): FieldError {
  return { reason: 'FieldValueForbidden', field, message: `Forbidden: ${detail}` };
}

export function duplicate(field: string, value: unknown): FieldError {
  return { reason: 'FieldValueDuplicate', field, message: `Duplicate value: ${JSON.stringify(value)}` };
}

export function tooLong(field: string, lengthMax: number): FieldError {
  return { reason: 'FieldValueTooLong', field, message: `Too long: may not be more than ${lengthMax} bytes` };
}

export function tooMany(field: string, count: number, countMax: number): FieldError {
  return { reason: 'FieldValueTooMany', field, message: `Too many: ${count}: must have at most ${countMax} items` };
}

export function wrongType(field: string, value: unknown, detail: string): FieldError {
  return {
    reason: 'FieldValueTypeInvalid',
    field,
    message: `Invalid value: ${JSON.stringify(typeName(value))}: ${detail}`,
  };
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' ? (Number.isInteger(value) ? 'integer' : 'number') : typeof value;
}
