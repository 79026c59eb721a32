// Limits the records of a name to one message: as many as fit are kept, taken evenly from all of
// them, so that no cluster or slice is left out because of where it stands in the list. Pure.

/** Limit below 65,535 bytes over TCP: the rest is for question, aliases in front, OPT and a signature. */
const recordBytesMax = 64_000;

/** Owner as a pointer, type, class, TTL and length. */
const recordOverheadBytes = 12;

/** However long their names are. */
const alwaysFits = 200;

/** `bytesOf` says how long the rdata of an item will be. All of them, in their order, if they fit. */
export function spreadToFit<T>(items: readonly T[], bytesOf: (item: T) => number): readonly T[] {
  if (items.length <= alwaysFits) return items;
  const sizeOf = (some: readonly T[]) => some.reduce((sum, item) => sum + recordOverheadBytes + bytesOf(item), 0);
  const size = sizeOf(items);
  if (size <= recordBytesMax) return items;
  let count = Math.floor((items.length * recordBytesMax) / size);
  for (;;) {
    const kept = Array.from({ length: count }, (_, i) => items[Math.floor((i * items.length) / count)]!);
    if (sizeOf(kept) <= recordBytesMax) return kept;
    count = Math.floor(count * 0.97);
  }
}
