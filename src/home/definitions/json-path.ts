// The JSONPath of printer columns and selectable fields: `.spec.ports[0].name`, `.a['x.y']`, `.a\.b`, `.list[*].name`,
// `.status.conditions[?(@.type=="Ready")].status`. Recursive descent, slices and unions are refused.

type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'filter'; readonly filter: Filter };

interface Filter {
  readonly path: readonly Step[];
  /** Absent: the path leads somewhere. */
  readonly compare?: { readonly isEqual: boolean; readonly value: string | number | boolean };
}

export type JsonPath = readonly Step[];

export type ParsedJsonPath =
  | { readonly kind: 'parsed'; readonly path: JsonPath }
  | { readonly kind: 'refused'; readonly reason: string };

const fieldPattern = /\.((?:\\.|[^.[\]\\\s"'(){}?*@=!<>,:])+)/y;
const wildcardPattern = /\.\*|\[\*\]/y;
const indexPattern = /\[(-?\d{1,9})\]/y;
const quotedPattern = /\[(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\]/y;
const filterPattern =
  /\[\?\(\s*@([^\s=!<>)]*)\s*(?:(==|!=)\s*('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|true|false|-?\d+(?:\.\d+)?)\s*)?\)\]/y;

const pathLengthMax = 1000;

export function parseJsonPath(text: string): ParsedJsonPath {
  if (!text.startsWith('.')) return { kind: 'refused', reason: 'must be a simple json path starting with .' };
  if (text.length > pathLengthMax) {
    return { kind: 'refused', reason: `must be no more than ${pathLengthMax} characters` };
  }
  return text === '.' ? { kind: 'parsed', path: [] } : parseSteps(text);
}

function parseSteps(text: string): ParsedJsonPath {
  const path: Step[] = [];
  let at = 0;
  while (at < text.length) {
    const found = parseStep(text, at);
    if (found === undefined) {
      return { kind: 'refused', reason: `is not understood from ${JSON.stringify(text.slice(at, at + 40))} on` };
    }
    path.push(found.step);
    at = found.end;
  }
  return { kind: 'parsed', path };
}

function parseStep(text: string, at: number): { step: Step; end: number } | undefined {
  const matchAt = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    return match && { match, end: pattern.lastIndex };
  };
  const all = matchAt(wildcardPattern);
  if (all) return { step: { kind: 'all' }, end: all.end };
  const field = matchAt(fieldPattern);
  if (field) return { step: { kind: 'field', name: withoutEscapes(field.match[1]!) }, end: field.end };
  const index = matchAt(indexPattern);
  if (index) return { step: { kind: 'index', index: Number(index.match[1]) }, end: index.end };
  const quoted = matchAt(quotedPattern);
  if (quoted) {
    return { step: { kind: 'field', name: withoutEscapes(quoted.match[1] ?? quoted.match[2]!) }, end: quoted.end };
  }
  const filter = matchAt(filterPattern);
  const parsed = filter && parseFilter(filter.match[1]!, filter.match[2], filter.match[3]);
  return parsed ? { step: { kind: 'filter', filter: parsed }, end: filter.end } : undefined;
}

function parseFilter(pathText: string, operator: string | undefined, literal = ''): Filter | undefined {
  const parsed = pathText === '' ? { kind: 'parsed' as const, path: [] } : parseJsonPath(pathText);
  if (parsed.kind === 'refused') return undefined;
  if (operator === undefined) return { path: parsed.path };
  return { path: parsed.path, compare: { isEqual: operator === '==', value: parseLiteral(literal) } };
}

function parseLiteral(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  return text.startsWith("'") || text.startsWith('"') ? withoutEscapes(text.slice(1, -1)) : Number(text);
}

function withoutEscapes(text: string): string {
  return text.replaceAll(/\\(.)/g, '$1');
}

/** Everything the path leads to; nothing if any step of it is missing. */
export function findByPath(path: JsonPath, value: unknown): unknown[] {
  let found: unknown[] = [value];
  for (const step of path) {
    found = found.length === 1 ? stepInto(step, found[0]) : found.flatMap((each) => stepInto(step, each));
    if (found.length === 0) return found;
  }
  return found;
}

function stepInto(step: Step, value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  const isList = Array.isArray(value);
  switch (step.kind) {
    case 'field':
      return !isList && Object.hasOwn(value, step.name) ? [(value as Record<string, unknown>)[step.name]] : [];
    case 'index': {
      const item = isList ? value.at(step.index) : undefined;
      return item === undefined ? [] : [item];
    }
    case 'all':
      return isList ? value : Object.values(value);
    case 'filter':
      return isList ? value.filter((item) => passes(step.filter, item)) : [];
  }
}

function passes({ path, compare }: Filter, item: unknown): boolean {
  const found = findByPath(path, item);
  if (compare === undefined) return found.length > 0;
  return found.some((value) => value === compare.value) === compare.isEqual;
}

/** The names of a path that is fields alone, `.spec.type`; undefined for any other. */
export function fieldNames(path: JsonPath): string[] | undefined {
  const names = path.map((step) => (step.kind === 'field' ? step.name : undefined));
  return names.includes(undefined) ? undefined : (names as string[]);
}
