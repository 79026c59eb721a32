// Validation of a definition beyond the types of its fields: the rules of Kubernetes for v1; and the warnings about what it
// asks for and does not get here.

import { isDns1035Label, isDnsSubdomain, type TextRule } from '../../base/dns/labels.ts';
import type { Pieces } from '../../base/turns.ts';
import { checkOneOf, checkRequiredText, checkText, checkUnchanged } from '../../kube/objects/checks.ts';
import { type FieldError, invalid, required } from '../../kube/objects/field-error.ts';
import { ruleSetOf } from '../cel/rules.ts';
import { shown } from '../schema/walk.ts';
import { isEstablished } from './accept.ts';
import type { CustomResourceDefinition, DefinitionNames, DefinitionSpec } from './definition.ts';
import { validateVersion } from './validate-version.ts';

/** The kind's own schema reports missing required fields; such a definition gets no further checks here. */
export function* validateDefinition(
  definition: CustomResourceDefinition,
  previous: CustomResourceDefinition | undefined,
): Pieces<FieldError[]> {
  const { metadata, spec } = definition;
  if (!hasWhatIsRequired(spec)) return [];
  const errors: FieldError[] = [];
  if (metadata.name !== `${spec.names.plural}.${spec.group}`) {
    errors.push(invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  }
  checkGroup(definition, errors);
  checkOneOf(errors, 'spec.scope', spec.scope, ['Cluster', 'Namespaced']);
  checkNames(spec.names, errors);
  yield* checkVersions(spec, previous?.spec, errors);
  checkConversion(spec, errors);
  if (spec.preserveUnknownFields === true) {
    const reason = 'must not be true; x-kubernetes-preserve-unknown-fields in the schema does the same';
    errors.push(invalid('spec.preserveUnknownFields', true, reason));
  }
  if (previous !== undefined) checkUpdate(definition, previous, errors);
  return errors;
}

function hasWhatIsRequired(spec: Partial<DefinitionSpec> | undefined): boolean {
  const names: Partial<DefinitionNames> | undefined = spec?.names;
  const hasNames = names?.plural !== undefined && names.kind !== undefined;
  return hasNames && spec?.group !== undefined && spec.scope !== undefined;
}

function checkGroup({ metadata, spec }: CustomResourceDefinition, errors: FieldError[]): void {
  checkRequiredText(errors, 'spec.group', spec.group, isDnsSubdomain);
  if (spec.group !== '' && !spec.group.includes('.')) {
    errors.push(invalid('spec.group', spec.group, 'must be a domain with at least one dot'));
  }
  const annotation = 'api-approved.kubernetes.io';
  if (/(^|\.)(k8s|kubernetes)\.io$/.test(spec.group) && !metadata.annotations?.[annotation]) {
    const reason = 'groups of Kubernetes are for definitions it has approved';
    errors.push(required(`metadata.annotations[${annotation}]`, reason));
  }
}

const isKindName: TextRule = (text) => isDns1035Label(text.toLowerCase()).map((why) => `in lower case, ${why}`);

function checkNames(names: DefinitionNames, errors: FieldError[]): void {
  checkRequiredText(errors, 'spec.names.plural', names.plural, isDns1035Label);
  checkRequiredText(errors, 'spec.names.singular', names.singular, isDns1035Label);
  checkRequiredText(errors, 'spec.names.kind', names.kind, isKindName);
  checkRequiredText(errors, 'spec.names.listKind', names.listKind, isKindName);
  if (names.kind !== '' && names.kind === names.listKind) {
    errors.push(invalid('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'));
  }
  for (const field of ['shortNames', 'categories'] as const) {
    for (const [index, name] of (names[field] ?? []).entries()) {
      checkText(errors, `spec.names.${field}[${index}]`, name, isDns1035Label);
    }
  }
}

function* checkVersions(
  { versions = [] }: DefinitionSpec,
  previous: DefinitionSpec | undefined,
  errors: FieldError[],
): Pieces<void> {
  const names = versions.map(({ name }) => name);
  if (versions.filter(({ storage }) => storage).length !== 1) {
    const reason = 'exactly one version must be the storage version';
    errors.push(invalid('spec.versions', shown(names), reason));
  }
  if (new Set(names).size !== names.length) {
    errors.push(invalid('spec.versions', shown(names), 'every version needs a name of its own'));
  }
  const before = new Map(previous?.versions?.map((version) => [version.name, version]));
  for (const [index, version] of versions.entries()) {
    yield;
    errors.push(...(yield* validateVersion(version, before.get(version.name), `spec.versions[${index}]`)));
  }
}

function checkConversion({ conversion }: DefinitionSpec, errors: FieldError[]): void {
  if (conversion === undefined) return;
  checkOneOf(errors, 'spec.conversion.strategy', conversion.strategy, ['None', 'Webhook']);
  if (conversion.strategy === 'Webhook') {
    const reason = 'this server does not call conversion webhooks: versions may differ in apiVersion alone (None)';
    errors.push(invalid('spec.conversion.strategy', 'Webhook', reason));
  } else if (conversion.webhook !== undefined) {
    errors.push({
      reason: 'FieldValueForbidden',
      field: 'spec.conversion.webhook',
      message: 'Forbidden: should not be set when strategy is not set to Webhook',
    });
  }
}

function checkUpdate(now: CustomResourceDefinition, before: CustomResourceDefinition, errors: FieldError[]): void {
  checkUnchanged(errors, 'spec.group', now.spec.group, before.spec.group);
  checkUnchanged(errors, 'spec.names.plural', now.spec.names.plural, before.spec.names.plural);
  if (isEstablished(before)) {
    checkUnchanged(errors, 'spec.scope', now.spec.scope, before.spec.scope);
    checkUnchanged(errors, 'spec.names.kind', now.spec.names.kind, before.spec.names.kind);
  }
  const names = new Set(now.spec.versions.map(({ name }) => name));
  for (const [index, version] of (now.status?.storedVersions ?? []).entries()) {
    if (names.has(version)) continue;
    const reason = `objects may be stored in this version: it stays in spec.versions until it is taken out of here`;
    errors.push(invalid(`status.storedVersions[${index}]`, version, reason));
  }
}

export function definitionWarnings(definition: CustomResourceDefinition): string[] {
  return definition.spec.versions.flatMap((version, index) => {
    const path = `spec.versions[${index}]`;
    const schema = version.schema?.openAPIV3Schema;
    const unknown = schema === undefined ? [] : ruleSetOf(schema).unknown;
    if (unknown.length === 0) return [];
    const places = unknown.map(({ path: at, name }) => `${name} in ${path}.schema.openAPIV3Schema${at}`);
    return [`x-kubernetes-validations are stored but not enforced by this server: ${shortList(places)}`];
  });
}

function shortList(paths: readonly string[]): string {
  const first = paths.slice(0, 3).join(', ');
  return paths.length > 3 ? `${first} and ${paths.length - 3} more` : first;
}
