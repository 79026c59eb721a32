// Objects with one and the same problem as one finding: without a proxy all imports have it. Pure.

const namedMax = 3;

/** The subject of the finding, and the text before its message. */
export function namedTogether(kind: string, keys: readonly string[]): { subject: string; prefix: string } {
  if (keys.length === 1) return { subject: `${kind} ${keys[0]}`, prefix: '' };
  const more = keys.length > namedMax ? ` and ${keys.length - namedMax} more` : '';
  return { subject: `${keys.length} ${kind}s`, prefix: `${keys.slice(0, namedMax).join(', ')}${more}: ` };
}
