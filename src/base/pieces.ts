// Long pure work in pieces. A generator yields where the event loop may turn; the caller decides whether it does.

export type Pieces<T> = Generator<void, T, void>;

/** `step` is awaited after each piece but the last. */
export async function inSteps<T>(pieces: Pieces<T>, step: () => Promise<void> | undefined): Promise<T> {
  for (;;) {
    const { done, value } = pieces.next();
    if (done) return value;
    await step();
  }
}

export function atOnce<T>(pieces: Pieces<T>): T {
  for (;;) {
    const { done, value } = pieces.next();
    if (done) return value;
  }
}
