// What `kubectl get` prints of our kinds.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Version {
  readonly additionalPrinterColumns?: readonly { readonly jsonPath: string; readonly priority?: number }[];
  readonly schema: { readonly openAPIV3Schema: Schema };
}

const folder = fileURLToPath(new URL('../../deploy/crds/', import.meta.url));

test.each(readdirSync(folder).filter((file) => file.endsWith('.yaml')))(
  '%s -> no usual column prints a list or a map as JSON',
  (file) => {
    const { spec } = parse(readFileSync(join(folder, file), 'utf8')) as { spec: { versions: Version[] } };
    const whole = spec.versions.flatMap(({ additionalPrinterColumns = [], schema }) =>
      additionalPrinterColumns
        .filter(({ priority = 0 }) => priority === 0)
        .filter(({ jsonPath }) => ['array', 'object'].includes(typeAt(schema.openAPIV3Schema, jsonPath) ?? ''))
        .map(({ jsonPath }) => jsonPath),
    );
    expect(whole).toEqual([]);
  },
);

/** Undefined for a path that picks one item, whose own fields are not looked at. */
function typeAt(schema: Schema, path: string): string | undefined {
  if (path.includes('[')) return undefined;
  const names = path.split('.').filter(Boolean);
  return names.reduce<Schema | undefined>((at, name) => at?.properties?.[name], schema)?.type;
}
