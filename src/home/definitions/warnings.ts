// What a definition asks for and does not get here, for the Warning header of the answer: it is kept, and nothing in it
// is lost when it moves to a server that does more.

import type { Schema } from '../schema/schema.ts';
import type { CustomResourceDefinition } from './definition.ts';

export function definitionWarnings(definition: CustomResourceDefinition): string[] {
  return definition.spec.versions.flatMap((version, index) => {
    const path = `spec.versions[${index}]`;
    const schema = version.schema?.openAPIV3Schema;
    const withRules = schema === undefined ? [] : pathsWithRules(schema, `${path}.schema.openAPIV3Schema`);
    const warnings: string[] = [];
    if (withRules.length > 0) {
      warnings.push(`x-kubernetes-validations are stored but not enforced by this server: ${shortList(withRules)}`);
    }
    if (version.subresources?.scale !== undefined) {
      warnings.push(`${path}.subresources.scale is stored but not served by this server`);
    }
    return warnings;
  });
}

function pathsWithRules(schema: Schema, path: string): string[] {
  const found = (schema['x-kubernetes-validations'] ?? []).length > 0 ? [path] : [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    found.push(...pathsWithRules(property, `${path}.properties[${name}]`));
  }
  if (schema.items !== undefined) found.push(...pathsWithRules(schema.items, `${path}.items`));
  if (typeof schema.additionalProperties === 'object') {
    found.push(...pathsWithRules(schema.additionalProperties, `${path}.additionalProperties`));
  }
  return found;
}

function shortList(paths: readonly string[]): string {
  const first = paths.slice(0, 3).join(', ');
  return paths.length > 3 ? `${first} and ${paths.length - 3} more` : first;
}
