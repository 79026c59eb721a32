// Small faults of a source file, one at a time: turned comparisons, swapped operators, conditions that always or never
// hold, dropped statements, empty texts. Types, imports, error texts and log lines are left alone.

import { parseAst } from 'vitest/node';

export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly line: number;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const swapped: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
};

/** Their texts are for people: a test that holds every word would only repeat them. */
const talkers = /(^|\.)(log|warn|info|debug|error)$|Error$/;

export function mutantsOf(source: string): Mutant[] {
  const mutants: Mutant[] = [];
  const lineAt = lineFinder(source);
  const add = (node: Pick<Node, 'start' | 'end'>, text: string): void => {
    if (source.slice(node.start, node.end) === text) return;
    mutants.push({ start: node.start, end: node.end, text, line: lineAt(node.start) });
  };
  visit(parseAst(source, { lang: 'ts' }) as unknown as Node, (node) => {
    if (isForPeople(node, source)) return false;
    for (const [at, text] of faultsOf(node, source)) add(at, text);
    return true;
  });
  return mutants;
}

function* faultsOf(node: Node, source: string): Generator<[Pick<Node, 'start' | 'end'>, string]> {
  const textOf = ({ start, end }: Node) => source.slice(start, end);
  if (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') {
    const [left, right] = [node['left'] as Node, node['right'] as Node];
    for (const operator of swapped[node['operator'] as string] ?? []) {
      // Mixed with the other one, ?? needs its own brackets.
      yield [node, `((${textOf(left)}) ${operator} (${textOf(right)}))`];
    }
  }
  if (node.type === 'UnaryExpression' && node['operator'] === '!')
    yield [node, `(${textOf(node['argument'] as Node)})`];
  if (node.type === 'IfStatement' || node.type === 'ConditionalExpression') {
    const condition = node['test'] as Node;
    yield [condition, 'true'];
    yield [condition, 'false'];
  }
  if (node.type === 'WhileStatement') yield [node['test'] as Node, 'false'];
  if (node.type === 'Literal' && typeof node['value'] === 'boolean') yield [node, String(!node['value'])];
  if (node.type === 'ExpressionStatement' && !isDirective(node)) yield [node, ';'];
  if (node.type === 'ContinueStatement' || node.type === 'BreakStatement') yield [node, ';'];
  if (node.type === 'ReturnStatement' && isTelling(node['argument'] as Node | null)) yield [node, 'return undefined;'];
}

/** False and undefined are the same to nearly all callers, and a boolean is turned anyway. */
function isTelling(returned: Node | null): boolean {
  if (returned === null || (returned.type === 'Identifier' && returned['name'] === 'undefined')) return false;
  return returned.type !== 'Literal' || typeof returned['value'] !== 'boolean';
}

function isDirective(node: Node): boolean {
  return typeof node['directive'] === 'string';
}

function isForPeople(node: Node, source: string): boolean {
  if (node.type.startsWith('TS') && !wrappers.has(node.type)) return true;
  if (node.type === 'ExpressionStatement') return isForPeople(node['expression'] as Node, source);
  if (node.type === 'ImportDeclaration' || node.type === 'ThrowStatement' || node.type === 'TemplateLiteral')
    return true;
  if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return false;
  const { start, end } = node['callee'] as Node;
  return talkers.test(source.slice(start, end));
}

/** Type syntax around an expression, which is looked into. */
const wrappers: ReadonlySet<string> = new Set([
  'TSNonNullExpression',
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSParameterProperty',
]);

function visit(node: Node, enter: (node: Node) => boolean): void {
  if (!enter(node)) return;
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) visit(child, enter);
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

function lineFinder(source: string): (offset: number) => number {
  const starts = [0];
  for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}
