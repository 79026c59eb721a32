// Validation of one version of a definition: its schema, its columns, the fields it can be selected by.

import { isDns1035Label } from '../../base/dns/labels.ts';
import { isSameJson } from '../../base/json.ts';
import type { Pieces } from '../../base/turns.ts';
import { checkOneOf, checkRequiredText, checkUnique } from '../../kube/objects/checks.ts';
import { type FieldError, forbidden, invalid, required, tooMany } from '../../kube/objects/field-error.ts';
import { compileRules } from '../cel/rules.ts';
import type { Schema } from '../schema/schema.ts';
import { validateStructural } from '../schema/structural.ts';
import { columnTypes } from './columns.ts';
import type { DefinitionScale, DefinitionVersion, PrinterColumn } from './definition.ts';
import { fieldNames, parseJsonPath } from './json-path.ts';

const columnFormats = ['int32', 'int64', 'float', 'double', 'byte', 'date', 'date-time', 'password'];
const selectableFieldsMax = 8;

/** Far above what a person reads. Each is looked up in each object of a table. */
const columnsMax = 100;

/** `previous` is the version of this name before; its schema has been checked then. */
export function* validateVersion(
  version: DefinitionVersion,
  previous: DefinitionVersion | undefined,
  path: string,
): Pieces<FieldError[]> {
  const errors: FieldError[] = [];
  checkRequiredText(errors, `${path}.name`, version.name, isDns1035Label);
  if (version.deprecationWarning !== undefined && version.deprecated !== true) {
    const reason = 'can only be set for deprecated versions';
    errors.push(invalid(`${path}.deprecationWarning`, version.deprecationWarning, reason));
  }
  const schema = version.schema?.openAPIV3Schema;
  const field = `${path}.schema.openAPIV3Schema`;
  const wrongSchema = yield* checkSchema(schema, previous?.schema?.openAPIV3Schema, field);
  errors.push(...wrongSchema);
  if (version.subresources?.scale !== undefined)
    checkScale(version.subresources.scale, `${path}.subresources.scale`, errors);
  const columns = version.additionalPrinterColumns ?? [];
  if (columns.length > columnsMax)
    return [...errors, tooMany(`${path}.additionalPrinterColumns`, columns.length, columnsMax)];
  for (const [index, column] of columns.entries())
    checkColumn(column, `${path}.additionalPrinterColumns[${index}]`, errors);
  if (schema !== undefined && wrongSchema.length === 0) checkSelectableFields(version, schema, path, errors);
  return errors;
}

function* checkSchema(schema: Schema | undefined, previous: Schema | undefined, field: string): Pieces<FieldError[]> {
  if (schema === undefined) return [required(field, 'schemas are required')];
  if (previous !== undefined && isSameJson(schema, previous)) return [];
  const errors = yield* validateStructural(schema, field);
  if (errors.length > 0) return errors;
  const rules = yield* compileRules(schema);
  return rules.errors.map((error) => ({ ...error, field: field + error.field }));
}

function checkScale(scale: DefinitionScale, path: string, errors: FieldError[]): void {
  checkPathBelow(scale.specReplicasPath, ['spec'], `${path}.specReplicasPath`, errors);
  checkPathBelow(scale.statusReplicasPath, ['status'], `${path}.statusReplicasPath`, errors);
  if (scale.labelSelectorPath)
    checkPathBelow(scale.labelSelectorPath, ['spec', 'status'], `${path}.labelSelectorPath`, errors);
}

/** A path of field names that leads into one of the parts of an object. */
function checkPathBelow(jsonPath: string, parts: readonly string[], field: string, errors: FieldError[]): void {
  if (!jsonPath) return void errors.push(required(field));
  const parsed = parseJsonPath(jsonPath);
  const names = parsed.kind === 'parsed' ? fieldNames(parsed.path) : undefined;
  if (names === undefined) errors.push(invalid(field, jsonPath, 'must be a simple json path of field names alone'));
  else if (names.length < 2 || !parts.includes(names[0]!)) {
    const where = parts.map((part) => `.${part}`).join(' or ');
    errors.push(invalid(field, jsonPath, `should be a json path under ${where}`));
  }
}

function checkColumn(column: PrinterColumn, path: string, errors: FieldError[]): void {
  if (!column.name) errors.push(required(`${path}.name`));
  checkOneOf(errors, `${path}.type`, column.type, columnTypes);
  if (column.format) checkOneOf(errors, `${path}.format`, column.format, columnFormats);
  checkPath(column.jsonPath, `${path}.jsonPath`, errors);
}

function checkPath(jsonPath: string, field: string, errors: FieldError[]): void {
  if (!jsonPath) return void errors.push(required(field));
  const parsed = parseJsonPath(jsonPath);
  if (parsed.kind === 'refused') errors.push(invalid(field, jsonPath, parsed.reason));
}

function checkSelectableFields(version: DefinitionVersion, schema: Schema, path: string, errors: FieldError[]): void {
  const fields = version.selectableFields ?? [];
  const list = `${path}.selectableFields`;
  if (fields.length > selectableFieldsMax) errors.push(tooMany(list, fields.length, selectableFieldsMax));
  for (const [index, { jsonPath }] of fields.entries()) {
    const field = `${list}[${index}].jsonPath`;
    const before = errors.length;
    checkPath(jsonPath, field, errors);
    if (errors.length === before) checkSelectablePath(jsonPath, schema, field, errors);
  }
  checkUnique(errors, fields, { of: ({ jsonPath }) => jsonPath, field: (index) => `${list}[${index}].jsonPath` });
}

function checkSelectablePath(jsonPath: string, schema: Schema, field: string, errors: FieldError[]): void {
  const parsed = parseJsonPath(jsonPath);
  const names = parsed.kind === 'parsed' ? fieldNames(parsed.path) : undefined;
  if (names === undefined || names.length === 0) {
    errors.push(invalid(field, jsonPath, 'must be a simple json path of field names alone'));
  } else if (names[0] === 'metadata') {
    errors.push(forbidden(field, 'must not point to fields in metadata'));
  } else {
    const target = names.reduce<Schema | undefined>((at, name) => at?.properties?.[name], schema);
    if (target === undefined) errors.push(invalid(field, jsonPath, 'does not exist in the schema'));
    else if (!['string', 'integer', 'boolean'].includes(target.type ?? '')) {
      errors.push(invalid(field, jsonPath, 'must point to a field of type string, boolean or integer'));
    }
  }
}
