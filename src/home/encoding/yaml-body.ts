// A request body in YAML, as the value that the same body would have been in JSON. Reading YAML costs a hundred times
// what reading JSON does: a document that would delay others is refused after a look at its tokens.

import { yaml } from '../../base/yaml.ts';
import { StatusError } from '../model/status.ts';
import { badRequest, nestedTooDeep } from '../model/status-errors.ts';
import { textOf } from '../model/stored.ts';
import { isDeeperThan, nestingDepthMax } from '../schema/walk.ts';

/** About four thousand lines; the lines of a text in a block are not counted. */
const tokensMax = 30_000;
/** Lines of a text in a block cost as well. */
const bytesMax = 512 * 1024;
/** Each alias is looked up among all anchors before it. */
const anchorsMax = 500;
const aliasesMax = 100;
const duplicatesMax = 100;

export function decodeYaml(body: Uint8Array): DecodedBody {
  if (body.length > bytesMax) {
    const message = `Request entity too large: more than ${bytesMax} bytes of YAML; send it as JSON`;
    throw new StatusError('RequestEntityTooLarge', message);
  }
  const text = textOf(body);
  refuseCostly(text);
  try {
    // The library looks for repeated keys in quadratic time; we look ourselves.
    const document = yaml().parseDocument(text, { uniqueKeys: false, merge: false });
    const [wrong] = document.errors;
    if (wrong !== undefined) throw wrong.code === 'MULTIPLE_DOCS' ? notYaml('it holds more than one document') : wrong;
    const duplicates: string[] = [];
    noteRepeatedKeys(document.contents, text, duplicates);
    const value = document.toJS({ maxAliasCount: aliasesMax });
    if (isDeeperThan(value, nestingDepthMax)) throw nestedTooDeep();
    return { value: JSON.parse(JSON.stringify(value ?? null)), duplicates };
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw notYaml((error as Error).message, error);
  }
}

function notYaml(why: string, cause?: unknown): StatusError {
  return badRequest(`the object provided is not valid YAML: ${why}`, cause);
}

function refuseCostly(text: string): void {
  let tokens = 0;
  let anchors = 0;
  let depth = 0;
  for (const token of new (yaml().Lexer)().lex(text)) {
    const sign = token[0];
    if (sign === '[' || sign === '{') depth++;
    else if (sign === ']' || sign === '}') depth--;
    else if (sign === '&' || sign === '*') anchors++;
    if (depth > nestingDepthMax) throw nestedTooDeep();
    if (++tokens > tokensMax || anchors > anchorsMax) {
      const message = `Request entity too large: more than ${tokensMax} tokens or ${anchorsMax} anchors of YAML; send it as JSON`;
      throw new StatusError('RequestEntityTooLarge', message);
    }
  }
}

function noteRepeatedKeys(node: unknown, text: string, duplicates: string[]): void {
  const { isAlias, isMap, isScalar, isSeq } = yaml();
  if (isAlias(node) || isScalar(node)) return;
  if (isSeq(node)) for (const item of node.items) noteRepeatedKeys(item, text, duplicates);
  else if (isMap(node)) {
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? String(key.value) : '';
      if (seen.has(name) && duplicates.length < duplicatesMax)
        duplicates.push(`line ${lineOf(key, text)}: key ${JSON.stringify(name)} already set in map`);
      seen.add(name);
      noteRepeatedKeys(value, text, duplicates);
    }
  }
}

function lineOf(key: unknown, text: string): number {
  const at = yaml().isNode(key) ? (key.range?.[0] ?? 0) : 0;
  return text.slice(0, at).split('\n').length;
}

export interface DecodedBody {
  readonly value: unknown;
  /** What to say about each key that stood twice in one object. */
  readonly duplicates: readonly string[];
}
