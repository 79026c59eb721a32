// Finds keys that stand twice in one JSON object, which parsing hides: the last one wins silently. One pass over the
// bytes, no recursion. The text must be valid JSON; of anything else the findings mean nothing, but the pass ends.

import { joinPath } from './walk.ts';

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

interface Container {
  /** Keys seen so far; undefined for an array. */
  readonly keys: Set<string> | undefined;
  /** Where in the container the scan is. */
  step: string | number;
  isKeyNext: boolean;
}

export interface JsonScan {
  /** Paths of repeated keys, once per repetition: `spec.ports[0].name`. At most 100 of them. */
  readonly duplicates: readonly string[];
  /** Nesting goes beyond the bound that was given; the scan stopped there. */
  readonly isTooDeep: boolean;
}

const duplicatesMax = 100;
const decoder = new TextDecoder();

export function scanJson(bytes: Uint8Array, options: { readonly depthMax: number }): JsonScan {
  const stack: Container[] = [];
  const duplicates: string[] = [];
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case quote: {
        const end = stringEnd(bytes, at);
        const top = stack.at(-1);
        if (top?.isKeyNext) noteKey(top, keyText(bytes, at, end), stack, duplicates);
        at = end;
        break;
      }
      case openBrace:
      case openBracket:
        if (stack.length >= options.depthMax) return { duplicates, isTooDeep: true };
        stack.push(container(bytes[at] === openBrace));
        break;
      case closeBrace:
      case closeBracket:
        stack.pop();
        break;
      case comma:
        next(stack.at(-1));
        break;
    }
  }
  return { duplicates, isTooDeep: false };
}

function container(isObject: boolean): Container {
  return isObject ? { keys: new Set(), step: '', isKeyNext: true } : { keys: undefined, step: 0, isKeyNext: false };
}

function next(top: Container | undefined): void {
  if (top === undefined) return;
  if (typeof top.step === 'number') top.step++;
  else top.isKeyNext = true;
}

function noteKey(top: Container, key: string, stack: readonly Container[], duplicates: string[]): void {
  top.step = key;
  top.isKeyNext = false;
  if (!top.keys!.has(key)) top.keys!.add(key);
  else if (duplicates.length < duplicatesMax) {
    duplicates.push(stack.reduce<string>((path, { step }) => joinPath(path, step), ''));
  }
}

/** Index of the closing quote, or the end of the text. */
function stringEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

// "a" and "\u0061" are the same key.
function keyText(bytes: Uint8Array, start: number, end: number): string {
  const raw = decoder.decode(bytes.subarray(start + 1, end));
  if (!raw.includes('\\')) return raw;
  try {
    return JSON.parse(`"${raw}"`);
  } catch {
    return raw;
  }
}
