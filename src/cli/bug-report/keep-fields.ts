// Copies only the named fields of an object, so that a field which nobody thought of stays out. Pure.

/** `spec.ports.*.name`: a `*` stands for every item or key, and `**` at the end for everything below. */
export function keepFields(value: unknown, paths: readonly string[]): unknown {
  return keep(
    value,
    paths.map((path) => path.split('.')),
  );
}

function keep(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (paths.some(([first]) => first === undefined || first === '**')) return value;
  if (Array.isArray(value)) {
    const below = rest(paths, '*');
    return below.length === 0 ? undefined : value.map((item) => keep(item, below));
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const kept = Object.entries(value).flatMap(([key, field]) => {
    const below = rest(paths, key);
    const copy = below.length === 0 ? undefined : keep(field, below);
    return copy === undefined ? [] : [[key, copy] as const];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function rest(paths: readonly (readonly string[])[], key: string): (readonly string[])[] {
  return paths.filter(([first]) => first === key || first === '*').map((path) => path.slice(1));
}
