import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { isMadeHere, madeAnnotation, madeMark, withKeptMarks } from './agent-marks.ts';

const exportWith = (annotations?: Record<string, string>): KubernetesObject => ({
  apiVersion: 'multicluster.x-k8s.io/v1beta1',
  kind: 'ServiceExport',
  metadata: { name: 'checkout', namespace: 'shop', annotations },
});

test('kept marks: those of the one that is there, beside what is wanted; nothing else of it', () => {
  const present = exportWith({ 'portolan.dev/drain': 'true', 'portolan.dev/exported-after': 'east', other: 'x' });
  const wanted = exportWith({ 'portolan.dev/export-to': 'west' });
  expect(withKeptMarks(wanted, present).metadata.annotations).toStrictEqual({
    'portolan.dev/export-to': 'west',
    'portolan.dev/exported-after': 'east',
    'portolan.dev/drain': 'true',
  });
  expect(withKeptMarks(exportWith(), exportWith({ 'portolan.dev/drain': 'true' })).metadata.annotations).toStrictEqual({
    'portolan.dev/drain': 'true',
  });
});

test.each([undefined, exportWith(), exportWith({ other: 'x' })])(
  'kept marks: none there -> what is wanted',
  (present) => {
    const wanted = exportWith({ a: 'b' });
    expect(withKeptMarks(wanted, present)).toBe(wanted);
  },
);

test('made here: by the name, namespace and cluster it was made for -> a copy elsewhere is not', () => {
  const made = exportWith({ [madeAnnotation]: madeMark({ namespace: 'shop', name: 'checkout' }, 'east') });
  expect(isMadeHere(made, 'east')).toBe(true);
  expect(isMadeHere(made, 'west')).toBe(false);
  expect(isMadeHere({ ...made, metadata: { ...made.metadata, namespace: 'other' } }, 'east')).toBe(false);
  expect(isMadeHere(exportWith(), 'east')).toBe(false);
});
