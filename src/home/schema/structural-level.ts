// One level of a schema by itself: its keywords and its pattern; and where an examination of many levels may pause.

import { type FieldError, forbidden, invalid } from '../../kube/objects/field-error.ts';
import { compileSchema } from './compile.ts';
import { forbiddenKeywords, keywordSchema } from './keywords.ts';
import { compilePattern } from './pattern.ts';
import type { Schema } from './schema.ts';
import { validateShallow } from './validate.ts';
import { shown, workMax } from './walk.ts';

/** About 2 ms, in the unit of `patternCost`. */
const pieceCost = 5000;
const levelCost = 40;

export class Examination {
  readonly errors: FieldError[] = [];
  /** All defaults of the schema share it. */
  readonly work = { left: workMax };
  readonly #patternCosts: ReadonlyMap<string, number>;
  #left = pieceCost;

  constructor(patternCosts: ReadonlyMap<string, number>) {
    this.#patternCosts = patternCosts;
  }

  /** Called before each level. */
  isPieceOver({ pattern }: Schema): boolean {
    this.#left -= levelCost + (pattern === undefined ? 0 : (this.#patternCosts.get(pattern) ?? 0));
    if (this.#left >= 0) return false;
    this.#left = pieceCost;
    return true;
  }
}

const keywords = compileSchema(keywordSchema);

/** False if the schema cannot be looked at any further. */
export function checkKeywords(schema: Schema, path: string, errors: FieldError[]): boolean {
  for (const keyword in schema) {
    if (Object.hasOwn(keywordSchema.properties!, keyword)) continue;
    const reason = forbiddenKeywords.get(keyword) ?? 'no such keyword in a structural schema';
    errors.push(forbidden(`${path}.${keyword}`, reason));
  }
  const wrong = validateShallow(keywords, schema, path);
  errors.push(...wrong);
  if (wrong.length > 0) return false;
  checkPattern(schema, path, errors);
  if (schema.uniqueItems === true) {
    const reason = 'takes time quadratic in the length; x-kubernetes-list-type: set does the same';
    errors.push(forbidden(`${path}.uniqueItems`, reason));
  }
  return true;
}

function checkPattern({ pattern }: Schema, path: string, errors: FieldError[]): void {
  if (pattern === undefined) return;
  const compiled = compilePattern(pattern);
  if (compiled.kind === 'compiled') return;
  errors.push(invalid(`${path}.pattern`, shown(pattern), `must be a valid regular expression: ${compiled.reason}`));
}
