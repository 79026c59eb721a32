// Evaluates the rules of a schema on an object that is written. A rule is not run if its cost for this very object is above
// what one rule may cost, and no rule is run when all of them together have used up the budget. A value that did not change is
// not held against rules that are newer than it, as in Kubernetes.

import { Optional } from '@marcbachmann/cel-js';
import { isSameJson } from '../../base/json.ts';
import { duplicate, type FieldError, forbidden, invalid, required } from '../../kube/objects/field-error.ts';
import type { JsonValue, Schema } from '../schema/schema.ts';
import { reasonOf } from './expression.ts';
import { extentOfValues } from './extent.ts';
import { type CompiledRule, type RuleNode, ruleSetOf } from './rules.ts';

/** Steps, as in Kubernetes: of one evaluation, and of all for one object. */
const evaluationCostMax = 1_000_000;
const objectCostMax = 10_000_000;
const messageLengthMax = 5 * 1024;
/** As Kubernetes names the field of a rule of the whole object. */
const wholeObject = '<nil>';

export function evaluateRules(schema: Schema, object: JsonValue, before: JsonValue | undefined): FieldError[] {
  const { root } = ruleSetOf(schema);
  if (root === undefined) return [];
  const evaluation = new Evaluation();
  evaluation.visit(root, { value: object, before, path: '' });
  return evaluation.errors;
}

export function hasRulesIn(schema: Schema): boolean {
  return ruleSetOf(schema).root !== undefined;
}

interface Place {
  readonly value: JsonValue | undefined;
  readonly before: JsonValue | undefined;
  readonly path: string;
}

class Evaluation {
  readonly errors: FieldError[] = [];
  #left = objectCostMax;

  visit(node: RuleNode, place: Place): void {
    const { value, before, path } = place;
    if (value === undefined || value === null || this.#left < 0) return;
    const old = before === null ? undefined : before;
    this.#runAll(node, { value, before: old, path });
    if (Array.isArray(value)) return this.#visitItems(node, value, { before: old, path });
    if (typeof value !== 'object') return;
    const oldFields = isObject(old) && !node.isAtomic ? old : {};
    for (const [name, below] of node.fields)
      if (Object.hasOwn(value, name))
        this.visit(below, { value: value[name], before: ownValue(oldFields, name), path: join(path, name) });
    if (node.values === undefined) return;
    for (const [key, each] of Object.entries(value))
      this.visit(node.values, { value: each, before: ownValue(oldFields, key), path: `${path}[${key}]` });
  }

  #visitItems(node: RuleNode, list: readonly JsonValue[], { before, path }: Pick<Place, 'before' | 'path'>): void {
    if (node.items === undefined) return;
    const { itemKeys } = node;
    const old = new Map<string, JsonValue>();
    if (itemKeys !== undefined && Array.isArray(before))
      for (const each of before) old.set(keyOf(each, itemKeys), each);
    for (const [index, value] of list.entries()) {
      const found = itemKeys === undefined ? undefined : old.get(keyOf(value, itemKeys));
      this.visit(node.items, { value, before: found, path: `${path}[${index}]` });
    }
  }

  #runAll(node: RuleNode, place: Place & { readonly value: JsonValue }): void {
    const { declared, rules } = node;
    if (declared === undefined || rules.length === 0) return;
    const { value, before } = place;
    const isUnchanged = before !== undefined && isSameJson(value, before);
    const self = declared.toCel(value);
    const oldSelf = before === undefined ? undefined : declared.toCel(before);
    for (const compiled of rules) {
      if (this.#left < 0) return;
      const { optionalOldSelf } = compiled.rule;
      if (compiled.isTransition ? oldSelf === undefined && !optionalOldSelf : isUnchanged) continue;
      const optional = oldSelf === undefined ? Optional.none() : Optional.of(oldSelf);
      this.#run(compiled, node, place, { self, oldSelf: optionalOldSelf ? optional : oldSelf });
    }
  }

  #run(compiled: CompiledRule, node: RuleNode, place: Place, variables: Readonly<Record<string, unknown>>): void {
    const { condition, rule, pathBelow } = compiled;
    const path = (place.path + pathBelow).replace(/^\./, '') || wholeObject;
    const scope = new Map([
      ['self', extentOfValues([place.value])],
      ['oldSelf', extentOfValues([place.before])],
    ]);
    const cost = condition.cost(scope);
    this.#left -= cost;
    if (cost > evaluationCostMax || this.#left < 0) {
      const why =
        cost > evaluationCostMax
          ? 'call cost exceeds limit'
          : 'validation failed due to running out of cost budget, no further validation rules will be run';
      this.errors.push(invalid(path, node.type, `${why}: ${rule.message ?? rule.rule}`));
      return;
    }
    try {
      if (condition.evaluate(variables) === true) return;
    } catch (error) {
      this.errors.push(invalid(path, node.type, `${reasonOf(error)} evaluating rule: ${rule.message ?? rule.rule}`));
      return;
    }
    const text =
      this.#messageOf(compiled, scope, variables) ?? rule.message?.trim() ?? `failed rule: ${rule.rule.trim()}`;
    this.errors.push(errorOf(rule.reason, { path, type: node.type, text }));
  }

  /** Undefined if it does not evaluate to one line. */
  #messageOf(
    { message }: CompiledRule,
    scope: Parameters<CompiledRule['condition']['cost']>[0],
    variables: Readonly<Record<string, unknown>>,
  ): string | undefined {
    if (message === undefined) return undefined;
    const cost = message.cost(scope);
    this.#left -= cost;
    if (cost > evaluationCostMax) return undefined;
    try {
      const text = message.evaluate(variables);
      if (typeof text !== 'string' || text.trim() === '' || text.includes('\n')) return undefined;
      return text.length > messageLengthMax ? undefined : text.trim();
    } catch {
      return undefined;
    }
  }
}

function errorOf(
  reason: string | undefined,
  { path, type, text }: { path: string; type: string; text: string },
): FieldError {
  if (reason === 'FieldValueForbidden') return forbidden(path, text);
  if (reason === 'FieldValueRequired') return required(path, text);
  if (reason === 'FieldValueDuplicate') return duplicate(path, type);
  return invalid(path, type, text);
}

function keyOf(item: JsonValue, keys: readonly string[]): string {
  return JSON.stringify(keys.map((key) => (isObject(item) ? (ownValue(item, key) ?? null) : null)));
}

function ownValue(object: { readonly [name: string]: JsonValue }, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function isObject(value: JsonValue | undefined): value is { [name: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}
