// Finds the rule for a name: an exact one, else the longest suffix, else the first pattern. Its cost does not grow with the
// number of exact and suffix rules.

import { decodeName, encodeName } from '../../base/dns/name.ts';
import { compileRegex, expand, type Regex } from './regex.ts';
import type { LocalRule } from './rules.ts';

export interface Matched {
  readonly rule: LocalRule;
  /** The rule's texts, with groups filled in: where a rewrite leads, or the data of records. */
  readonly texts: readonly string[];
  /** Bytes of the name before the suffix; 0 for other rules. */
  readonly headBytes: number;
}

interface PatternRule {
  readonly rule: LocalRule;
  readonly regex: Regex;
}

export class RuleMatcher {
  readonly #exact = new Map<string, LocalRule>();
  readonly #suffixes = new Map<string, LocalRule>();
  readonly #patterns: PatternRule[] = [];

  /** The first of two rules for the same name counts. */
  constructor(rules: readonly LocalRule[]) {
    for (const rule of rules) {
      const { match } = rule;
      if (match.kind === 'regex') {
        const compiled = compileRegex(match.source);
        if ('regex' in compiled) this.#patterns.push({ rule, regex: compiled.regex });
        continue;
      }
      const known = match.kind === 'exact' ? this.#exact : this.#suffixes;
      const key = keyOf(encodeName(match.name));
      if (!known.has(key)) known.set(key, rule);
    }
  }

  find(name: Uint8Array, length: number): Matched | undefined {
    const whole = keyOf(name.subarray(0, length));
    const exact = this.#exact.get(whole);
    if (exact) return { rule: exact, texts: textsOf(exact), headBytes: 0 };
    if (this.#suffixes.size > 0) {
      for (let at = 0; name[at] !== 0; at += name[at]! + 1) {
        const rule = this.#suffixes.get(whole.slice(at));
        if (rule) return { rule, texts: textsOf(rule), headBytes: at };
      }
    }
    return this.#patterns.length === 0 ? undefined : this.#findPattern(decodeName(name));
  }

  #findPattern(name: string): Matched | undefined {
    for (const { rule, regex } of this.#patterns) {
      const texts = expand(regex, name, textsOf(rule));
      if (texts) return { rule, texts, headBytes: 0 };
    }
    return undefined;
  }
}

function keyOf(name: Uint8Array): string {
  return Buffer.from(name.buffer, name.byteOffset, name.length).toString('latin1');
}

function textsOf({ result }: LocalRule): string[] {
  if (result.kind === 'rewrite') return [result.to];
  return result.kind === 'records' ? result.records.map(([, text]) => text) : [];
}
