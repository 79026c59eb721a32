// A label selector as objects carry it: which labels it chooses, and what is wrong with it.

import { checkText } from './checks.ts';
import { type FieldError, forbidden, invalid, required } from './field-error.ts';
import { isLabelValue, isQualifiedName } from './names.ts';

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: LabelExpression[];
}

interface LabelExpression {
  key: string;
  operator: string;
  values?: string[];
}

export function isEmptySelector(selector: LabelSelector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0;
}

/** An empty selector chooses everything. */
export function selectsLabels(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  const hasLabels = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labelOf(labels, key) === value);
  return hasLabels && (selector.matchExpressions ?? []).every((expression) => holds(expression, labels));
}

// A label may be called constructor, and not every object that has such a member has such a label.
function labelOf(labels: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function holds({ key, operator, values = [] }: LabelExpression, labels: Readonly<Record<string, string>>): boolean {
  const value = labelOf(labels, key);
  if (operator === 'Exists') return value !== undefined;
  if (operator === 'DoesNotExist') return value === undefined;
  if (operator === 'In') return value !== undefined && values.includes(value);
  return operator === 'NotIn' && (value === undefined || !values.includes(value));
}

export function checkLabelSelector(errors: FieldError[], field: string, selector: LabelSelector): void {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    checkText(errors, `${field}.matchLabels`, key, isQualifiedName);
    checkText(errors, `${field}.matchLabels`, value, isLabelValue);
  }
  for (const [index, expression] of (selector.matchExpressions ?? []).entries()) {
    checkExpression(errors, `${field}.matchExpressions[${index}]`, expression);
  }
}

function checkExpression(errors: FieldError[], path: string, { key, operator, values = [] }: LabelExpression): void {
  checkText(errors, `${path}.key`, key ?? '', isQualifiedName);
  if (operator === 'In' || operator === 'NotIn') {
    const why = "must be specified when `operator` is 'In' or 'NotIn'";
    if (values.length === 0) errors.push(required(`${path}.values`, why));
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    if (values.length > 0) errors.push(forbidden(`${path}.values`, why));
  } else errors.push(invalid(`${path}.operator`, operator ?? '', 'not a valid selector operator'));
  for (const [index, value] of values.entries()) checkText(errors, `${path}.values[${index}]`, value, isLabelValue);
}
