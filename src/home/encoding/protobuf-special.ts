// Messages whose JSON is not an object of their fields: times, durations, quantities, ports by number or name, and
// JSON carried as bytes. From the decoded fields of the message to the value JSON shows; undefined leaves it out.

import { MalformedError } from '../../base/protobuf/wire-reader.ts';

export type Fields = Record<string, unknown>;

export const specialValues: Readonly<Record<string, (fields: Fields) => unknown>> = {
  'meta.v1.Time': (fields) => formatTime(secondsOf(fields), nanosOf(fields), 0),
  'meta.v1.MicroTime': (fields) => formatTime(secondsOf(fields), nanosOf(fields), 6),
  'meta.v1.Duration': (fields) => formatDuration(numberOf(fields['duration'])),
  'meta.v1.FieldsV1': (fields) => parseRaw(fields['-']),
  'resource.Quantity': (fields) => fields['string'] || '0',
  'intstr.IntOrString': (fields) =>
    numberOf(fields['type']) === 0 ? numberOf(fields['intVal']) : (fields['strVal'] ?? ''),
  'runtime.RawExtension': (fields) => parseRaw(fields['-']),
  'authentication.v1.ExtraValue': (fields) => fields['items'] ?? [],
  'authorization.v1.ExtraValue': (fields) => fields['items'] ?? [],
  'apiextensions.v1.JSON': (fields) => parseRaw(fields['-']),
  'apiextensions.v1.JSONSchemaPropsOrBool': (fields) => fields['schema'] ?? fields['allows'] ?? false,
  'apiextensions.v1.JSONSchemaPropsOrArray': (fields) => fields['jSONSchemas'] ?? fields['schema'],
  'apiextensions.v1.JSONSchemaPropsOrStringArray': (fields) => fields['property'] ?? fields['schema'],
};

function secondsOf(fields: Fields): number {
  const seconds = numberOf(fields['seconds']);
  // Years 1 to 9999: what RFC 3339 can write.
  if (seconds < -62_135_596_800 || seconds > 253_402_300_799)
    throw new MalformedError(`second ${seconds} is not a date`);
  return seconds;
}

function nanosOf(fields: Fields): number {
  const nanos = numberOf(fields['nanos']);
  if (nanos < 0 || nanos > 999_999_999) throw new MalformedError(`${nanos} nanoseconds are not part of a second`);
  return nanos;
}

// The zero time is Go's way to say that there is none.
function formatTime(seconds: number, nanos: number, digits: 0 | 6): string | undefined {
  if (seconds === 0 && nanos === 0) return undefined;
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  const fraction = digits === 0 ? '' : `.${String(Math.floor(nanos / 1000)).padStart(6, '0')}`;
  return `${whole}${fraction}Z`;
}

/** As Go writes it: `1h2m3.5s`, `15ms`, `0s`. */
export function formatDuration(nanoseconds: number): string {
  const sign = nanoseconds < 0 ? '-' : '';
  const total = Math.abs(nanoseconds);
  if (total === 0) return '0s';
  if (total < 1e3) return `${sign}${total}ns`;
  if (total < 1e6) return `${sign}${total / 1e3}µs`;
  if (total < 1e9) return `${sign}${total / 1e6}ms`;
  const seconds = Math.floor(total / 1e9);
  const fraction = String(total % 1e9)
    .padStart(9, '0')
    .replace(/0+$/, '');
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const tail = `${seconds % 60}${fraction === '' ? '' : `.${fraction}`}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${tail}`;
  return minutes > 0 ? `${sign}${minutes}m${tail}` : sign + tail;
}

function parseRaw(base64: unknown): unknown {
  if (typeof base64 !== 'string' || base64 === '') return undefined;
  try {
    return JSON.parse(Buffer.from(base64, 'base64').toString('utf8')) ?? undefined;
  } catch {
    throw new MalformedError('bytes that should hold JSON do not');
  }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
