// RFC 6902: JSON patch. Changes the document in place and returns it. A faulty patch throws a PatchError; the
// document is useless afterwards.

import { isObject, isSameJson, setMember } from '../../base/json.ts';
import { isDeeperThan, nestingDepthMax } from '../schema/walk.ts';

export class PatchError extends Error {}

/** The patch itself is not one: a different refusal than a patch that does not fit. */
export class MalformedPatchError extends PatchError {}

export interface PatchLimits {
  readonly operationsMax: number;
  /** Bytes that copy operations may add together: a copy of a copy of a copy doubles every time. */
  readonly copiedBytesMax: number;
  /** Items of lists that insertions and removals may push aside together. */
  readonly shiftedItemsMax: number;
}

interface Operation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: readonly string[];
  readonly from: readonly string[];
  readonly value: unknown;
  readonly text: string;
}

export function applyJsonPatch(document: unknown, patch: unknown, limits: PatchLimits): unknown {
  const operations = parseJsonPatch(patch, limits);
  const root = { document, shiftsLeft: limits.shiftedItemsMax, bytesLeft: limits.copiedBytesMax };
  for (const operation of operations) apply(root, operation);
  // A copy of a value into itself nests deeper each time.
  if (isDeeperThan(root.document, nestingDepthMax)) throw new PatchError('the result nests too deep');
  return root.document;
}

function parseJsonPatch(patch: unknown, limits: PatchLimits): Operation[] {
  if (!Array.isArray(patch)) throw new MalformedPatchError('a JSON patch must be a list of operations');
  if (patch.length > limits.operationsMax) {
    throw new PatchError(`it has ${patch.length} operations, at most ${limits.operationsMax} are allowed`);
  }
  return patch.map(parseOperation);
}

const operations = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test']);

function parseOperation(raw: unknown, index: number): Operation {
  const { op, path, from, value } = isObject(raw) ? raw : {};
  if (typeof op !== 'string' || !operations.has(op)) {
    throw new MalformedPatchError(`operation ${index}: unexpected kind: ${JSON.stringify(op)}`);
  }
  const text = `operation ${index}, ${op} ${JSON.stringify(path)}`;
  const needsFrom = op === 'move' || op === 'copy';
  const needsValue = op === 'add' || op === 'replace' || op === 'test';
  if (needsValue && !Object.hasOwn(raw as object, 'value')) throw new MalformedPatchError(`${text}: value is missing`);
  return {
    op: op as Operation['op'],
    path: parsePointer(path, text),
    from: needsFrom ? parsePointer(from, `${text} from`) : [],
    value,
    text,
  };
}

/** RFC 6901. */
function parsePointer(pointer: unknown, text: string): string[] {
  if (pointer === '') return [];
  if (typeof pointer !== 'string' || !pointer.startsWith('/')) {
    throw new MalformedPatchError(`${text}: a path must be empty or start with "/"`);
  }
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

interface Root {
  document: unknown;
  shiftsLeft: number;
  bytesLeft: number;
}

/** Every item behind the place has to move: cheap once, not ten thousand times in a list of a million. */
function spliceBounded(root: Root, list: unknown[], at: number, operation: Operation, ...added: unknown[]): void {
  root.shiftsLeft -= list.length - at;
  if (root.shiftsLeft < 0) throw new PatchError(`${operation.text}: moves more items of lists than allowed`);
  list.splice(at, 1 - added.length, ...added);
}

function apply(root: Root, operation: Operation): void {
  const { op, path, from, value } = operation;
  switch (op) {
    case 'add':
      return add(root, path, value, operation);
    case 'remove':
      return remove(root, path, operation);
    case 'replace':
      find(root, path, operation);
      return replace(root, path, value, operation);
    case 'move': {
      if (path.length > from.length && from.every((step, index) => step === path[index])) {
        throw new PatchError(`${operation.text}: a value cannot be moved into itself`);
      }
      const moved = find(root, from, operation);
      remove(root, from, operation);
      return add(root, path, moved, operation);
    }
    case 'copy':
      return add(root, path, copyBounded(root, find(root, from, operation), operation), operation);
    case 'test':
      if (!isSameJson(find(root, path, operation), value)) {
        throw new PatchError(`${operation.text}: test failed: the value there is another one`);
      }
  }
}

function copyBounded(root: Root, value: unknown, { text }: Operation): unknown {
  const json = JSON.stringify(value);
  root.bytesLeft -= json.length;
  if (root.bytesLeft < 0) throw new PatchError(`${text}: copies more than allowed`);
  return JSON.parse(json);
}

function find(root: Root, path: readonly string[], operation: Operation): unknown {
  let at = root.document;
  for (const step of path) {
    if (Array.isArray(at)) at = at[indexOf(step, at.length - 1, operation)];
    else if (isObject(at) && Object.hasOwn(at, step)) at = at[step];
    else throw missing(operation, step);
  }
  return at;
}

function missing(operation: Operation, step: string): PatchError {
  return new PatchError(`${operation.text}: there is no ${JSON.stringify(step)} at this path`);
}

function indexOf(step: string, highest: number, operation: Operation): number {
  if (!/^(0|[1-9]\d{0,8})$/.test(step))
    throw new PatchError(`${operation.text}: ${JSON.stringify(step)} is not an index`);
  if (Number(step) > highest) throw new PatchError(`${operation.text}: index ${step} is out of bounds`);
  return Number(step);
}

function parentOf(root: Root, path: readonly string[], operation: Operation): { parent: unknown; last: string } {
  return { parent: find(root, path.slice(0, -1), operation), last: path.at(-1)! };
}

function add(root: Root, path: readonly string[], value: unknown, operation: Operation): void {
  if (path.length === 0) {
    root.document = value;
    return;
  }
  const { parent, last } = parentOf(root, path, operation);
  if (Array.isArray(parent)) {
    const at = last === '-' ? parent.length : indexOf(last, parent.length, operation);
    spliceBounded(root, parent, at, operation, value);
  } else if (isObject(parent)) setMember(parent, last, value);
  else throw missing(operation, last);
}

function replace(root: Root, path: readonly string[], value: unknown, operation: Operation): void {
  if (path.length === 0) {
    root.document = value;
    return;
  }
  const { parent, last } = parentOf(root, path, operation);
  if (Array.isArray(parent)) parent[indexOf(last, parent.length - 1, operation)] = value;
  else setMember(parent as Record<string, unknown>, last, value);
}

function remove(root: Root, path: readonly string[], operation: Operation): void {
  if (path.length === 0) throw new PatchError(`${operation.text}: the whole document cannot be removed`);
  const { parent, last } = parentOf(root, path, operation);
  if (Array.isArray(parent)) spliceBounded(root, parent, indexOf(last, parent.length - 1, operation), operation);
  else if (isObject(parent) && Object.hasOwn(parent, last)) delete parent[last];
  else throw missing(operation, last);
}
