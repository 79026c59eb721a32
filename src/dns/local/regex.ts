// Patterns on names, with RE2's syntax and its promise: time linear in the name. Loaded when the first pattern is read.

import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';

const require = createRequire(import.meta.url);
const sourceMax = 1000;
/** What one character of a name may cost. */
const programMax = 2000;

export type Regex = RE2JS;

export function compileRegex(source: string): { readonly regex: Regex } | { readonly problem: string } {
  if (source.length > sourceMax) return { problem: `at most ${sourceMax} characters` };
  try {
    const library: typeof import('re2js') = require('re2js');
    const regex = library.RE2JS.compile(source);
    return regex.programSize() > programMax ? { problem: 'it is too large' } : { regex };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

const references = /\$(?:(\d{1,2})|\{(\w+)\})/g;

/** The reference in a text that no group of the pattern answers. */
export function unknownGroup(regex: Regex, text: string): string | undefined {
  for (const [reference, number, name] of text.matchAll(references)) {
    const isKnown = name === undefined ? Number(number) <= regex.groupCount() : name in regex.namedGroups();
    if (!isKnown) return reference;
  }
  return undefined;
}

/** `$1` and `${name}` stand for groups, `$0` for all that was matched; undefined if the name does not match. */
export function expand(regex: Regex, name: string, texts: readonly string[]): string[] | undefined {
  const matcher = regex.matcher(name);
  if (!matcher.find()) return undefined;
  const groupOf = (_reference: string, number: string | undefined, group: string) =>
    (number === undefined ? matcher.group(group) : matcher.group(Number(number))) ?? '';
  return texts.map((text) => text.replace(references, groupOf));
}
