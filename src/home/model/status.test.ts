import { expect, test } from 'vitest';
import { required } from '../../kube/objects/field-error.ts';
import { invalidObject } from './status.ts';

const subject = { group: 'example.com', kind: 'Widget', name: 'w' };

test('status: invalid -> every field error as a cause, in the words kubectl shows', () => {
  const { message, details } = invalidObject(subject, [required('spec.a'), required('spec.b', 'it is needed')]);
  expect(message).toBe(
    'Widget.example.com "w" is invalid: [spec.a: Required value, spec.b: Required value: it is needed]',
  );
  expect(details?.causes).toEqual([
    { reason: 'FieldValueRequired', message: 'Required value', field: 'spec.a' },
    { reason: 'FieldValueRequired', message: 'Required value: it is needed', field: 'spec.b' },
  ]);
});

test('status: many errors below a field with a name of a megabyte -> an answer of bounded size', () => {
  const long = 'x'.repeat(1_000_000);
  const { message, details } = invalidObject(
    subject,
    Array.from({ length: 1000 }, (_, at) => required(`${long}.${at}`)),
  );
  expect(message.length + JSON.stringify(details).length).toBeLessThan(2_000_000);
  expect(message).toMatch(/and \d+ more\]$/);
});
