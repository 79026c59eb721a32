// Decides whether a recorded history of one register could have come from a single copy of it. Pure.
//
// The search is that of Wing and Gong with Lowe's memory of visited configurations: an operation may be put next if no
// other one returned before it was called. An operation whose outcome is unknown (its server was killed) may be put
// anywhere after its call, or left out. Histories of different keys are independent and are checked one by one.

/** The content of a register: a value no other write had, or undefined when there is none. */
export type Content = string | undefined;

export type Action =
  | { readonly kind: 'read'; readonly saw: Content }
  | { readonly kind: 'write'; readonly expected: Content; readonly wrote: Content }
  /** A write that was refused because the register did not hold what was expected. */
  | { readonly kind: 'refused'; readonly expected: Content };

export interface Operation {
  readonly calledAt: number;
  /** Infinity when the answer never came. */
  readonly returnedAt: number;
  readonly action: Action;
}

export function isLinearizable(history: readonly Operation[]): boolean {
  const operations = history
    .filter(({ action, returnedAt }) => action.kind === 'write' || returnedAt !== Number.POSITIVE_INFINITY)
    .sort((one, other) => one.calledAt - other.calledAt);
  const visited = new Set<string>();
  const isPlaced = new Uint8Array(operations.length);
  let mustPlace = operations.filter(({ returnedAt }) => returnedAt !== Number.POSITIVE_INFINITY).length;

  // Each frame is the operation that was placed, and the content before it.
  const path: { index: number; before: Content }[] = [];
  let content: Content;
  let next = 0;
  for (;;) {
    if (mustPlace === 0) return true;
    const index = nextCandidate(operations, isPlaced, content, next);
    if (index >= 0) {
      const operation = operations[index] as Operation;
      const after = operation.action.kind === 'write' ? operation.action.wrote : content;
      isPlaced[index] = 1;
      const configuration = `${after ?? '\u0000'}|${placedKey(isPlaced)}`;
      if (!visited.has(configuration)) {
        visited.add(configuration);
        path.push({ index, before: content });
        content = after;
        if (operation.returnedAt !== Number.POSITIVE_INFINITY) mustPlace -= 1;
        next = firstUnplaced(isPlaced);
        continue;
      }
      isPlaced[index] = 0;
      next = index + 1;
      continue;
    }
    const last = path.pop();
    if (last === undefined) return false;
    isPlaced[last.index] = 0;
    if ((operations[last.index] as Operation).returnedAt !== Number.POSITIVE_INFINITY) mustPlace += 1;
    content = last.before;
    next = last.index + 1;
  }
}

/** The first operation from `start` on that may come next and agrees with the content, or -1. */
function nextCandidate(
  operations: readonly Operation[],
  isPlaced: Uint8Array,
  content: Content,
  start: number,
): number {
  let earliestReturn = Number.POSITIVE_INFINITY;
  for (let index = 0; index < operations.length; index += 1) {
    if (isPlaced[index] === 1) continue;
    const operation = operations[index] as Operation;
    if (operation.calledAt > earliestReturn) return -1;
    if (index >= start && agrees(operation.action, content)) return index;
    earliestReturn = Math.min(earliestReturn, operation.returnedAt);
  }
  return -1;
}

function agrees(action: Action, content: Content): boolean {
  if (action.kind === 'read') return action.saw === content;
  return action.kind === 'write' ? action.expected === content : action.expected !== content;
}

function firstUnplaced(isPlaced: Uint8Array): number {
  const index = isPlaced.indexOf(0);
  return index < 0 ? isPlaced.length : index;
}

// Everything before the first gap is placed, so only what follows it tells configurations apart.
function placedKey(isPlaced: Uint8Array): string {
  const first = firstUnplaced(isPlaced);
  const last = isPlaced.lastIndexOf(1);
  return `${first}:${last > first ? Buffer.from(isPlaced.subarray(first, last + 1)).toString('latin1') : ''}`;
}
