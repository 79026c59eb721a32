// Expressions of the Common Expression Language, compiled against declared variables. What Kubernetes adds to the language and
// this server does not have is told apart from what is wrong.

import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import { compilePattern } from '../schema/pattern.ts';
import { costOf, type Scope } from './cost.ts';

type Compiled =
  | { readonly kind: 'compiled'; readonly expression: Expression }
  /** Known to Kubernetes, and not here. */
  | { readonly kind: 'unknown'; readonly name: string }
  | { readonly kind: 'refused'; readonly reason: string };

export interface Expression {
  /** Type of the result: `bool`, `string`. */
  readonly type: string;
  uses(variable: string): boolean;
  cost(scope: Scope): number;
  /** Throws what goes wrong in it. */
  evaluate(variables: Readonly<Record<string, unknown>>): unknown;
}

const functionsOfKubernetes: ReadonlySet<string> = new Set(
  'ip isIP cidr isCIDR quantity isQuantity url isURL semver isSemver format find findAll transformList transformMap transformMapEntry'.split(
    ' ',
  ),
);
const librariesOfKubernetes: ReadonlySet<string> = new Set(['sets', 'math', 'base64', 'format', 'authorizer']);
const loopsOverPairs: ReadonlySet<string> = new Set(['all', 'exists', 'existsOne', 'exists_one']);

/** Rules are texts of people: far above what one has. */
const limits = { maxAstNodes: 5_000, maxDepth: 100 };

const language = new Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false, limits })
  .registerFunction('string.linearMatches(string): bool', (text: string, pattern: string) => matches(text, pattern))
  .registerFunction('list.isSorted(): bool', (list: unknown[]) =>
    list.every((value, index) => index === 0 || compare(list[index - 1], value) <= 0),
  )
  .registerFunction('list.sum(): dyn', (list: (bigint | number)[]) =>
    list.reduce((sum, value) => ((sum as number) + (value as number)) as number, typeof list[0] === 'number' ? 0 : 0n),
  )
  .registerFunction('list.min(): dyn', (list: unknown[]) => extreme(list, 'min'))
  .registerFunction('list.max(): dyn', (list: unknown[]) => extreme(list, 'max'))
  .registerFunction('list<dyn>.indexOf(dyn): int', (list: unknown[], value: unknown) => BigInt(list.indexOf(value)))
  .registerFunction('list<dyn>.lastIndexOf(dyn): int', (list: unknown[], value: unknown) =>
    BigInt(list.lastIndexOf(value)),
  );

/** Types and variables may be added to it. */
export function createLanguage(): Environment {
  return language.clone();
}

/** Why it is no expression at all, whatever its variables are. */
export function syntaxErrorOf(environment: Environment, text: string): string | undefined {
  try {
    environment.parse(text);
    return undefined;
  } catch (error) {
    return `Syntax error: ${reasonOf(error)}`;
  }
}

export function compileExpression(environment: Environment, text: string): Compiled {
  const syntaxError = syntaxErrorOf(environment, text);
  if (syntaxError !== undefined) return { kind: 'refused', reason: syntaxError };
  try {
    const parsed = environment.parse(withNamedItems(environment, text));
    const unknown = nodesOf(parsed.ast)
      .map(nameOfKubernetes)
      .find((name) => name !== undefined);
    if (unknown !== undefined) return { kind: 'unknown', name: unknown };
    const wrongPattern = nodesOf(parsed.ast)
      .map(useLinearPatterns)
      .find((reason) => reason !== undefined);
    if (wrongPattern !== undefined) return { kind: 'refused', reason: wrongPattern };
    const { valid, type = 'dyn', error } = parsed.check();
    if (!valid) return { kind: 'refused', reason: inWordsOfKubernetes(reasonOf(error)) };
    const names = new Set(nodesOf(parsed.ast).flatMap((node) => (node.op === 'id' ? [node.args] : [])));
    return {
      kind: 'compiled',
      expression: {
        type,
        uses: (variable) => names.has(variable),
        cost: (scope) => costOf(parsed.ast, scope),
        evaluate: (variables) => parsed(variables),
      },
    };
  } catch (error) {
    return { kind: 'refused', reason: reasonOf(error) };
  }
}

function inWordsOfKubernetes(reason: string): string {
  const missing = /^No such key: (.+)$/.exec(reason);
  return missing === null ? reason : `undefined field '${missing[1]}'`;
}

/** Passes of one look; items of items of items are rare. */
const passesMax = 5;

/** The library's `has` takes fields of variables alone: what it is asked of, such as an item of a list, gets a name. */
function withNamedItems(environment: Environment, text: string): string {
  let result = text;
  for (let pass = 0; pass < passesMax; pass++) {
    const asked = nodesOf(environment.parse(result).ast).filter(isHasOfItem);
    const inner = asked.filter((one) => !asked.some((other) => other !== one && isInside(other, one)));
    if (inner.length === 0) return result;
    for (const { start, end, args } of inner.toSorted((one, other) => other.start - one.start)) {
      const [item, field] = args[1][0].args;
      const named = `cel.bind(__item, ${result.slice(item.start, item.end)}, has(__item.${field}))`;
      result = result.slice(0, start) + named + result.slice(end);
    }
  }
  return result;
}

type Has = ASTNode & { readonly args: readonly [string, readonly [{ readonly args: readonly [ASTNode, string] }]] };

function isHasOfItem(node: ASTNode): node is Has {
  if (node.op !== 'call' || node.args[0] !== 'has' || node.args[1].length !== 1) return false;
  let from = node.args[1][0]!;
  if (from.op !== '.') return false;
  while (from.op === '.' || from.op === '.?') from = from.args[0];
  return from.op !== 'id';
}

function isInside(inner: ASTNode, outer: ASTNode): boolean {
  return inner.start >= outer.start && inner.end <= outer.end;
}

/** The first line: what follows shows the place in the source. */
export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0]!.trim();
}

function nodesOf(node: ASTNode): ASTNode[] {
  return [node, ...childrenOf(node).flatMap(nodesOf)];
}

function childrenOf(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return [];
    case '.':
    case '.?':
      return [node.args[0]];
    case 'call':
      return node.args[1];
    case 'rcall':
      return [node.args[1], ...node.args[2]];
    case 'map':
      return node.args.flat();
    case '!_':
    case '-_':
      return [node.args];
    default:
      return node.args;
  }
}

function nameOfKubernetes(node: ASTNode): string | undefined {
  if (node.op === 'id') return librariesOfKubernetes.has(node.args) ? node.args : undefined;
  if (node.op !== 'call' && node.op !== 'rcall') return undefined;
  const name = node.args[0];
  if (functionsOfKubernetes.has(name)) return `${name}()`;
  const isOverPairs = node.op === 'rcall' && loopsOverPairs.has(name) && node.args[2].length === 3;
  return isOverPairs ? `${name}() with two variables` : undefined;
}

/** The library's own `matches` takes time without bound for some patterns. The reason why a pattern is refused. */
function useLinearPatterns(node: ASTNode): string | undefined {
  if ((node.op !== 'rcall' && node.op !== 'call') || node.args[0] !== 'matches') return undefined;
  const args = node.op === 'rcall' ? node.args[2] : node.args[1].slice(1);
  const pattern = args[0]?.op === 'value' && typeof args[0].args === 'string' ? args[0].args : undefined;
  if (node.op === 'call') return 'matches is called on a text: text.matches(pattern)';
  (node.args as [string, ASTNode, ASTNode[]])[0] = 'linearMatches';
  if (pattern === undefined) return undefined;
  const compiled = compilePattern(pattern);
  return compiled.kind === 'refused' ? `error parsing regexp: ${compiled.reason}` : undefined;
}

function matches(text: string, source: string): boolean {
  const compiled = compilePattern(source);
  if (compiled.kind === 'refused') throw new Error(`error parsing regexp: ${compiled.reason}`);
  return compiled.pattern.test(text);
}

function extreme(list: unknown[], which: 'min' | 'max'): unknown {
  if (list.length === 0) throw new Error(`${which} called on empty list`);
  const sign = which === 'min' ? 1 : -1;
  return list.reduce((best, value) => (sign * compare(value, best) < 0 ? value : best));
}

function compare(one: unknown, other: unknown): number {
  const [a, b] = [one, other] as [number, number];
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
