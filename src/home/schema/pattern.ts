// Patterns in schemas, with RE2's syntax and its promise: time linear in the text. Matching is a search, not anchored,
// as Kubernetes does it.

import { RE2JS } from 're2js';

export interface Pattern {
  test(text: string): boolean;
}

/** Longest pattern taken; a compiled one costs memory and matching time in proportion. */
const patternLengthMax = 10_000;

export type CompiledPattern =
  /** `size` is how many steps its program has: what one character may cost. */
  | { readonly kind: 'compiled'; readonly pattern: Pattern; readonly size: number }
  | { readonly kind: 'refused'; readonly reason: string };

export function compilePattern(source: string): CompiledPattern {
  if (source.length > patternLengthMax) {
    return { kind: 'refused', reason: `is ${source.length} characters long, at most ${patternLengthMax} are taken` };
  }
  try {
    const pattern = RE2JS.compile(source);
    return { kind: 'compiled', pattern, size: pattern.programSize() };
  } catch (error) {
    return { kind: 'refused', reason: error instanceof Error ? error.message : String(error) };
  }
}
