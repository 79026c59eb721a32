// Patterns in schemas, with RE2's syntax and its promise: time linear in the text. Matching is a search, not anchored,
// as Kubernetes does it.

import { RE2JS } from 're2js';

export interface Pattern {
  test(text: string): boolean;
}

/** Longest pattern taken; a compiled one costs memory and matching time in proportion. */
export const patternLengthMax = 10_000;

export type CompiledPattern =
  /** `size` is how many steps its program has: what one character may cost. */
  | { readonly kind: 'compiled'; readonly pattern: Pattern; readonly size: number }
  | { readonly kind: 'refused'; readonly reason: string };

/** Twice what one definition may have, together. */
const memoSizeMax = 100_000;

class Memo {
  readonly #known = new Map<string, CompiledPattern>();
  #size = 0;

  get(source: string): CompiledPattern | undefined {
    return this.#known.get(source);
  }

  keep(source: string, compiled: CompiledPattern & { kind: 'compiled' }): CompiledPattern {
    this.#size += compiled.size;
    if (this.#size > memoSizeMax) {
      this.#known.clear();
      this.#size = compiled.size;
    }
    this.#known.set(source, compiled);
    return compiled;
  }
}

// Caches compiled patterns: a definition is compiled to be checked and again to be served, and many fields share a
// pattern.
const memo = new Memo();

export function compilePattern(source: string): CompiledPattern {
  if (source.length > patternLengthMax) {
    return { kind: 'refused', reason: `is ${source.length} characters long, at most ${patternLengthMax} are taken` };
  }
  const known = memo.get(source);
  if (known !== undefined) return known;
  try {
    const pattern = RE2JS.compile(source);
    return memo.keep(source, { kind: 'compiled', pattern, size: pattern.programSize() });
  } catch (error) {
    return { kind: 'refused', reason: error instanceof Error ? error.message : String(error) };
  }
}
