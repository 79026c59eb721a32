import { expect, test } from 'vitest';
import { spreadToFit } from './spread.ts';

const sizeOf = (items: readonly number[]) => items.reduce((sum, bytes) => sum + 12 + bytes, 0);
const keptOf = (items: readonly number[]) => spreadToFit(items, (bytes) => bytes);

test('spread: as many as fit into a message -> all, in their order', () => {
  const [few, small] = [Array.from({ length: 200 }, () => 1000), Array.from({ length: 4000 }, () => 4)];
  expect(keptOf(few)).toBe(few);
  expect(keptOf(small)).toBe(small);
});

test('spread: more than fit -> about as many as fit, taken evenly from all of them', () => {
  const items = Array.from({ length: 8000 }, (_, i) => 4 + i / 1e6);
  const kept = keptOf(items);
  expect(sizeOf(kept)).toBeLessThanOrEqual(64_000);
  expect(kept.length).toBeGreaterThan(3900);
  const places = kept.map((item) => items.indexOf(item));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(Math.max(...places.slice(1).map((place, i) => place - places[i]!))).toBeLessThanOrEqual(3);
});

test('spread: those that are taken are the long ones -> fewer, until they fit', () => {
  // Every second one is long, and these are the ones that an even choice of half of them hits.
  const items = Array.from({ length: 8000 }, (_, i) => (i % 2 === 0 ? 8 : 0));
  const kept = keptOf(items);
  expect(sizeOf(kept)).toBeLessThanOrEqual(64_000);
  expect(kept.length).toBeGreaterThan(2500);
});
