// Functions of a source file that are longer, or take more, than a person keeps in mind at once.

import { parseSync } from 'vite';

export const functionLinesMax = 80;
export const parametersMax = 6;

export interface LongFunction {
  readonly lines: number;
  /** Its length, file and name. */
  readonly text: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly id?: { readonly name?: string } | null;
  readonly key?: { readonly name?: string };
  readonly params?: readonly unknown[];
}

export function longFunctions(file: string, code: string): LongFunction[] {
  return functionsIn(file, code).flatMap(({ node, name }) => {
    const lines = code.slice(node.start, node.end).split('\n').length;
    return lines > functionLinesMax ? [{ lines, text: `${lines} ${file} ${name}` }] : [];
  });
}

export function parameterLists(file: string, code: string): string[] {
  return functionsIn(file, code).flatMap(({ node, name }) => {
    const count = node.params?.length ?? 0;
    return count > parametersMax ? [`${count} ${file} ${name}`] : [];
  });
}

function functionsIn(file: string, code: string): { readonly node: Node; readonly name: string }[] {
  const found: { node: Node; name: string }[] = [];
  const visit = (value: unknown, name: string): void => {
    if (Array.isArray(value)) for (const one of value) visit(one, name);
    if (typeof value !== 'object' || value === null || !('type' in value)) return;
    const node = value as Node;
    const own = node.id?.name ?? node.key?.name ?? name;
    if (/^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type))
      found.push({ node, name: own });
    for (const child of Object.values(node)) if (typeof child === 'object') visit(child, own);
  };
  visit(parseSync(file, code).program, '');
  return found;
}
