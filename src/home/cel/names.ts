// Names of properties as identifiers of the Common Expression Language, escaped as Kubernetes does.

const keywords: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return void while var'.split(
    ' ',
  ),
);
const usable = /^[A-Za-z_./-][A-Za-z0-9_./-]*$/;
const escapes: readonly (readonly [RegExp, string])[] = [
  [/__/g, '__underscores__'],
  [/\./g, '__dot__'],
  [/-/g, '__dash__'],
  [/\//g, '__slash__'],
];

/** Undefined for a name that rules cannot use. */
export function identifierOf(name: string): string | undefined {
  if (!usable.test(name)) return undefined;
  if (keywords.has(name)) return `__${name}__`;
  return escapes.reduce((text, [pattern, written]) => text.replace(pattern, written), name);
}
