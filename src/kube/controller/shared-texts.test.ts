import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { SharedTexts } from './shared-texts.ts';

const parsed = (index: number) =>
  JSON.parse(
    `{"kind":"ServiceImport of a long name","metadata":{"name":"s${index}","labels":{"app":"a label that everybody has"}},"list":["one text in a list",null,7]}`,
  ) as Record<string, unknown>;

test('shared texts -> the object is what it was', () => {
  const texts = new SharedTexts();
  for (let index = 0; index < 3; index += 1) expect(texts.share(parsed(index))).toEqual(parsed(index));
});

test('shared texts: many objects of equal texts -> held once', () => {
  setFlagsFromString('--expose_gc');
  const collect = runInNewContext('gc') as () => void;
  const heldBytes = (share: (object: Record<string, unknown>) => unknown) => {
    collect();
    const before = process.memoryUsage().heapUsed;
    const held = Array.from({ length: 20_000 }, (_, index) => share(parsed(index)));
    collect();
    return (process.memoryUsage().heapUsed - before) / held.length;
  };
  const alone = heldBytes((object) => object);
  const texts = new SharedTexts();
  expect(heldBytes((object) => texts.share(object))).toBeLessThan(0.85 * alone);
});

test('shared texts: a million different ones -> as good as nothing is kept', () => {
  setFlagsFromString('--expose_gc');
  const collect = runInNewContext('gc') as () => void;
  const texts = new SharedTexts();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < 1_000_000; index += 1) texts.share({ uid: `never seen again ${index}` });
  collect();
  expect((process.memoryUsage().heapUsed - before) / 1e6).toBeLessThan(10);
  expect(texts.share({ uid: 'never seen again 1' })).toEqual({ uid: 'never seen again 1' });
});
