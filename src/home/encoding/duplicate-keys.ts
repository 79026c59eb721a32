// Looks over a JSON text before it is parsed: finds keys that stand twice in one object, which parsing hides (the last one
// wins silently), and stops where it nests too deep or holds too many values. One pass over the text, no recursion. It must be valid JSON; of anything else the findings mean nothing, but the pass ends.

import { Buffer } from 'node:buffer';
import { joinPath } from '../schema/walk.ts';

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** An object being read, or an array: then it has no keys. */
interface Container {
  readonly isObject: boolean;
  /** Keys seen so far: a list while it is short, where that is faster, then a set. */
  keys: string[] | Set<string>;
  /** Where in the container the scan is. */
  step: string | number;
  isKeyNext: boolean;
}

export interface JsonScan {
  /** Paths of repeated keys, once per repetition: `spec.ports[0].name`. At most 100 of them. */
  readonly duplicates: readonly string[];
  /** Which of the bounds that were given does not hold; the scan stopped there. */
  readonly excess?: 'depth' | 'values';
}

const duplicatesMax = 100;
const shortListMax = 12;

/** The text has one character per byte (latin1), whatever the bytes mean: JSON's own signs are ASCII, and so are nearly
 *  all keys. */
export function scanJson(text: string, options: { readonly depthMax: number; readonly valuesMax: number }): JsonScan {
  let values = 0;
  const stack: Container[] = [];
  const duplicates: string[] = [];
  let top: Container | undefined;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote: {
        const end = stringEnd(text, at);
        if (top?.isKeyNext) noteKey(top, keyOf(text.slice(at + 1, end)), stack, duplicates);
        at = end;
        break;
      }
      case openBrace:
      case openBracket:
        if (stack.length >= options.depthMax) return { duplicates, excess: 'depth' };
        if (++values > options.valuesMax) return { duplicates, excess: 'values' };
        stack.push((top = container(text.charCodeAt(at) === openBrace)));
        break;
      case closeBrace:
      case closeBracket:
        stack.pop();
        top = stack.at(-1);
        break;
      case comma:
        if (++values > options.valuesMax) return { duplicates, excess: 'values' };
        if (top !== undefined) next(top);
        break;
    }
  }
  return { duplicates };
}

function container(isObject: boolean): Container {
  return { isObject, keys: [], step: isObject ? '' : 0, isKeyNext: isObject };
}

function next(top: Container): void {
  if (top.isObject) top.isKeyNext = true;
  else top.step = (top.step as number) + 1;
}

function noteKey(top: Container, key: string, stack: readonly Container[], duplicates: string[]): void {
  top.step = key;
  top.isKeyNext = false;
  if (!hasSeen(top, key)) return;
  if (duplicates.length < duplicatesMax) {
    duplicates.push(stack.reduce<string>((path, { step }) => joinPath(path, step), ''));
  }
}

/** Remembers the key as well. */
function hasSeen(top: Container, key: string): boolean {
  const { keys } = top;
  if (keys instanceof Set) return keys.size === keys.add(key).size;
  if (keys.includes(key)) return true;
  keys.push(key);
  if (keys.length > shortListMax) top.keys = new Set(keys);
  return false;
}

/** Index of the closing quote, or the end of the text. Each run of backslashes is looked at once. */
function stringEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let before = at;
    while (text.charCodeAt(before - 1) === backslash) before--;
    if ((at - before) % 2 === 0) return at;
  }
}

// "a" and "\u0061" are the same key, and so are the two ways to write what is not ASCII.
function keyOf(raw: string): string {
  let isPlain = true;
  for (let at = 0; isPlain && at < raw.length; at++) {
    const code = raw.charCodeAt(at);
    isPlain = code < 0x80 && code !== backslash;
  }
  if (isPlain) return raw;
  const decoded = Buffer.from(raw, 'latin1').toString('utf8');
  try {
    return JSON.parse(`"${decoded}"`);
  } catch {
    return decoded;
  }
}
