// What a test or a benchmark has started, ended in reverse order.

const started: (() => unknown)[] = [];

export function endLater(end: () => unknown): void {
  started.push(end);
}

export async function endStarted(): Promise<void> {
  for (const end of started.splice(0).reverse()) await end();
}
