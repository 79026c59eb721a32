import { describe, expect, test } from 'vitest';
import { annotationBytesMax, readExportedMetadata } from './exported-metadata.ts';

describe('exported metadata', () => {
  test('exported metadata: what an object can have -> all of it, nothing to say', () => {
    const asked = { labels: { app: 'checkout', 'a.b/c': '' }, annotations: { Note: 'any text, ümlauts too' } };
    expect(readExportedMetadata(asked)).toEqual({ ...asked, notes: [] });
    expect(readExportedMetadata({})).toEqual({ labels: {}, annotations: {}, notes: [] });
  });

  test('exported metadata: a label that cannot be one -> left out with the reason, the others stay', () => {
    const read = readExportedMetadata({ labels: { app: 'not valid!', tier: 'web', 'a/b/c': 'x' } });
    expect(read.labels).toEqual({ tier: 'web' });
    expect(read.notes).toHaveLength(2);
    expect(read.notes.join()).toContain('exported label "app=not valid!" left out: must be letters');
  });

  test("exported metadata: annotations that are the importing agent's word -> left out, and said", () => {
    const annotations = { 'multicluster.kubernetes.io/derived-service': 'admin', 'portolan.dev/x': 'y', note: 'z' };
    const read = readExportedMetadata({ annotations });
    expect(read.annotations).toEqual({ note: 'z' });
    expect(read.notes[0]).toMatch(/derived-service=admin" left out: multicluster\.kubernetes\.io\/ is for agents/);
  });

  test('exported metadata: annotations larger than an object can have -> all left out, with both sizes', () => {
    const read = readExportedMetadata({ labels: { app: 'a' }, annotations: { note: 'x'.repeat(300_000) } });
    expect([read.labels, read.annotations]).toEqual([{ app: 'a' }, {}]);
    expect(read.notes).toEqual(['exported annotations left out: 300004 bytes, an object can have 262144']);
    expect(readExportedMetadata({ annotations: { n: 'x'.repeat(annotationBytesMax - 1) } }).notes).toEqual([]);
  });

  test('exported metadata: nonsense in the hundreds -> a bounded number of notes of bounded length', () => {
    const labels = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`l${index}`, '!'.repeat(2000)]));
    const annotations = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`a${index}`, 5 as never]));
    const read = readExportedMetadata({ labels, annotations });
    expect([read.labels, read.annotations]).toEqual([{}, {}]);
    expect(read.notes.length).toBe(12);
    for (const note of read.notes) expect(note.length).toBeLessThan(300);
  });
});
