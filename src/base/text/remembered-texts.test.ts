import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteReader, ByteWriter } from '../dns/bytes.ts';
import { RememberedTexts } from './remembered-texts.ts';

test('remembered texts: more than there are places, equal hashes too -> every text is right', () => {
  const texts = new RememberedTexts();
  const word = fc.stringMatching(/^[ -~]{0,40}$/);
  fc.assert(
    fc.property(fc.array(word, { maxLength: 50 }), fc.constantFrom(0, 1, 64), (words, hash) => {
      for (const each of [...words, ...words])
        expect(texts.text(Buffer.from(`<${each}>`), 1, 1 + each.length, hash)).toBe(each);
    }),
  );
});

test('packed texts: read with and without a memory of texts -> as they were written', () => {
  const texts = new RememberedTexts();
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { maxLength: 20 }), (words) => {
      const writer = new ByteWriter(1);
      for (const word of words) writer.text(word);
      for (const memory of [undefined, texts]) {
        const reader = new ByteReader(writer.copy(), 0, memory);
        for (const word of words) if (Buffer.byteLength(word) < 256) expect(reader.text()).toBe(word);
      }
    }),
  );
});

test('byte writer: views of equal length before and after it grew -> what was written last', () => {
  const writer = new ByteWriter(2);
  expect([...writer.u8(1).u8(2).view()]).toEqual([1, 2]);
  writer.u8(3);
  expect([...writer.reset().u8(4).u8(5).view()]).toEqual([4, 5]);
  expect([...writer.reset().u8(6).u8(7).view()]).toEqual([6, 7]);
});
