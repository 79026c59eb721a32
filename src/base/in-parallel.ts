// Does the same to many things, several at a time. Resolves when all have ended; if some failed, rejects then with the
// first failure: nothing is left going on behind the caller's back.

export async function inParallel<T>(
  items: Iterable<T>,
  options: { readonly atOnceMax: number },
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const failures: unknown[] = [];
  const left = items[Symbol.iterator]();
  const lane = async () => {
    for (let next = left.next(); !next.done; next = left.next()) {
      await work(next.value).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: options.atOnceMax }, lane));
  if (failures.length > 0) throw failures[0];
}
