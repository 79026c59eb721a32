// The rules of one schema, compiled where they stand, with everything that is wrong with them in Kubernetes' words.

import { inOneGo, type Pieces } from '../../base/turns.ts';
import { type FieldError, forbidden, invalid, notSupported, required } from '../../kube/objects/field-error.ts';
import type { Rule, Schema } from '../schema/schema.ts';
import { Declarations, type Declared } from './declare.ts';
import { compileExpression, createLanguage, type Expression, syntaxErrorOf } from './expression.ts';
import { type Extent, extentOfSchema, lengthMax } from './extent.ts';

export interface CompiledRule {
  readonly rule: Rule;
  readonly condition: Expression;
  readonly message: Expression | undefined;
  /** Evaluated when there is a value from before; with `optionalOldSelf` also without. */
  readonly isTransition: boolean;
  /** What the rule's own field path adds to the path of the value. */
  readonly pathBelow: string;
}

/** Where rules stand, and what leads there. */
export interface RuleNode {
  readonly type: string;
  readonly declared: Declared | undefined;
  readonly rules: readonly CompiledRule[];
  readonly fields: ReadonlyMap<string, RuleNode>;
  readonly items: RuleNode | undefined;
  readonly values: RuleNode | undefined;
  /** The fields by which an item is found among those before; absent if it is not. */
  readonly itemKeys: readonly string[] | undefined;
  readonly isAtomic: boolean;
}

interface RuleSet {
  /** Absent if there are no rules. */
  readonly root: RuleNode | undefined;
  readonly errors: readonly FieldError[];
  /** Rules that are not enforced, since they use what this server does not have. */
  readonly unknown: readonly { readonly path: string; readonly name: string }[];
}

/** As in Kubernetes: steps of one rule, and of all rules of a schema. */
const ruleCostMax = 10_000_000;
const totalCostMax = 100_000_000;
const advice =
  'try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared';
const reasons = ['FieldValueInvalid', 'FieldValueForbidden', 'FieldValueRequired', 'FieldValueDuplicate'];

// A memo of constants, by schema: compiling is pure.
const known = new WeakMap<Schema, RuleSet>();

export function ruleSetOf(schema: Schema): RuleSet {
  return known.get(schema) ?? inOneGo(compileRules(schema));
}

/** Paths in it begin below the schema. */
export function* compileRules(schema: Schema): Pieces<RuleSet> {
  const compiler = new Compiler(schema);
  const root = yield* compiler.visit(schema, { path: '', count: 1, isFound: true });
  const set = { root, errors: compiler.errors, unknown: compiler.unknown };
  known.set(schema, set);
  return set;
}

interface Position {
  readonly path: string;
  /** How often the rule may be evaluated for one object. */
  readonly count: number;
  /** Whether the value from before can be found. */
  readonly isFound: boolean;
}

class Compiler {
  readonly errors: FieldError[] = [];
  readonly unknown: { path: string; name: string }[] = [];
  readonly #schema: Schema;
  readonly #language = createLanguage();
  readonly #declarations = new Declarations(this.#language);
  #root: Declared | undefined;
  #hasDeclared = false;
  #totalCost = 0;

  constructor(schema: Schema) {
    this.#schema = schema;
  }

  *visit(schema: Schema, position: Position): Pieces<RuleNode | undefined> {
    const { path } = position;
    const rules = schema['x-kubernetes-validations'] ?? [];
    const compiled: CompiledRule[] = [];
    for (const [index, rule] of rules.entries()) {
      yield;
      const at = { ...position, path: `${path}.x-kubernetes-validations[${index}]` };
      compiled.push(...this.#compile(rule, schema, at));
    }
    const isAtomic = schema['x-kubernetes-map-type'] === 'atomic';
    const itemKeys = schema['x-kubernetes-list-type'] === 'map' ? schema['x-kubernetes-list-map-keys'] : undefined;
    const isFoundBelow = position.isFound && !isAtomic;
    const fields = new Map<string, RuleNode>();
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const below = { path: `${path}.properties[${name}]`, count: position.count, isFound: isFoundBelow };
      const node = yield* this.visit(property, below);
      if (node !== undefined) fields.set(name, node);
    }
    const count = position.count * Math.max(1, lengthMax(schema));
    const isItemFound = position.isFound && itemKeys !== undefined;
    const items =
      schema.items && (yield* this.visit(schema.items, { path: `${path}.items`, count, isFound: isItemFound }));
    const { additionalProperties } = schema;
    const values =
      typeof additionalProperties === 'object'
        ? yield* this.visit(additionalProperties, {
            ...{ path: `${path}.additionalProperties`, count, isFound: isFoundBelow },
          })
        : undefined;
    if (compiled.length === 0 && fields.size === 0 && items === undefined && values === undefined) return undefined;
    const declared = this.#declaredOf(schema);
    return { type: schema.type ?? 'object', declared, rules: compiled, fields, items, values, itemKeys, isAtomic };
  }

  #declaredOf(schema: Schema): Declared | undefined {
    // All types first: a language that variables were added to takes no more of them.
    if (!this.#hasDeclared) this.#root = this.#declarations.root(this.#schema);
    this.#hasDeclared = true;
    return schema === this.#schema ? this.#root : this.#declarations.of(schema);
  }

  #compile(rule: Rule, schema: Schema, position: Position): CompiledRule[] {
    const { path } = position;
    const before = this.errors.length;
    this.#checkTexts(rule, path);
    const pathBelow = this.#pathBelow(rule, schema, path);
    if (this.errors.length > before) return [];
    const declared = this.#declaredOf(schema);
    const syntaxError = declared === undefined ? syntaxErrorOf(this.#language, rule.rule) : undefined;
    if (syntaxError !== undefined) {
      this.errors.push(invalid(`${path}.rule`, rule.rule, `compilation failed: ${syntaxError}`));
      return [];
    }
    if (declared === undefined) {
      this.unknown.push({ path, name: 'a value without declared fields' });
      return [];
    }
    const language = this.#language.clone();
    language.registerVariable('self', declared.type);
    language.registerVariable('oldSelf', rule.optionalOldSelf ? `optional<${declared.type}>` : declared.type);
    const expressionOf = (text: string, field: string, type: 'bool' | 'string') => {
      const compiled = compileExpression(language, text);
      if (compiled.kind === 'unknown') this.unknown.push({ path: `${path}.${field}`, name: compiled.name });
      if (compiled.kind === 'refused')
        this.errors.push(invalid(`${path}.${field}`, text, `compilation failed: ${compiled.reason}`));
      if (compiled.kind !== 'compiled') return undefined;
      const isRight = compiled.expression.type === type || compiled.expression.type === 'dyn';
      if (!isRight) this.errors.push(invalid(`${path}.${field}`, text, `must evaluate to a ${type}`));
      return isRight ? compiled.expression : undefined;
    };
    const condition = expressionOf(rule.rule, 'rule', 'bool');
    const message =
      rule.messageExpression === undefined
        ? undefined
        : expressionOf(rule.messageExpression, 'messageExpression', 'string');
    if (condition === undefined || this.errors.length > before) return [];
    const isTransition = condition.uses('oldSelf') || rule.optionalOldSelf === true;
    this.#checkTransition(rule, condition.uses('oldSelf'), position);
    this.#checkCost([condition, message], schema, position);
    return [{ rule, condition, message, isTransition, pathBelow }];
  }

  #checkTexts(rule: Rule, path: string): void {
    const { errors } = this;
    if (rule.rule.trim() === '') errors.push(required(`${path}.rule`, 'rule is not specified'));
    if (rule.message !== undefined && rule.message.trim() === '')
      errors.push(invalid(`${path}.message`, rule.message, 'message must be non-empty if specified'));
    if (rule.message?.trim().includes('\n'))
      errors.push(invalid(`${path}.message`, rule.message, 'message must not contain line breaks'));
    if (rule.rule.trim().includes('\n') && !rule.message && !rule.messageExpression)
      errors.push(required(`${path}.message`, 'message must be specified if rule contains line breaks'));
    if (rule.messageExpression !== undefined && rule.messageExpression.trim() === '')
      errors.push(required(`${path}.messageExpression`, 'messageExpression must be non-empty if specified'));
    if (rule.reason !== undefined && !reasons.includes(rule.reason))
      errors.push(notSupported(`${path}.reason`, rule.reason, reasons));
  }

  #checkTransition(rule: Rule, usesOld: boolean, { path, isFound }: Position): void {
    if (usesOld && !isFound) {
      const why = 'oldSelf cannot be used on the uncorrelatable portion of the schema';
      this.errors.push(invalid(`${path}.rule`, rule.rule, why));
    }
    if (rule.optionalOldSelf !== undefined && !usesOld) {
      const why = 'may not be set if oldSelf is not used in rule';
      this.errors.push(invalid(`${path}.optionalOldSelf`, rule.optionalOldSelf, why));
    }
  }

  #checkCost(expressions: readonly (Expression | undefined)[], schema: Schema, { path, count }: Position): void {
    const extent: Extent = extentOfSchema(schema);
    const scope = new Map([
      ['self', extent],
      ['oldSelf', extent],
    ]);
    for (const [index, expression] of expressions.entries()) {
      if (expression === undefined) continue;
      const cost = expression.cost(scope) * count;
      const field = `${path}.${index === 0 ? 'rule' : 'messageExpression'}`;
      if (cost > ruleCostMax)
        this.errors.push(
          forbidden(field, `estimated rule cost exceeds budget by ${factor(cost, ruleCostMax)} (${advice})`),
        );
      const isWithin = this.#totalCost <= totalCostMax;
      this.#totalCost += Math.min(cost, ruleCostMax);
      if (isWithin && this.#totalCost > totalCostMax) {
        const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by';
        this.errors.push(forbidden('', `${what} ${factor(this.#totalCost, totalCostMax)} (${advice})`));
      }
    }
  }

  #pathBelow({ fieldPath }: Rule, schema: Schema, path: string): string {
    if (fieldPath === undefined) return '';
    const names = parseFieldPath(fieldPath);
    if (names === undefined || names.length === 0) {
      this.errors.push(invalid(`${path}.fieldPath`, fieldPath, "fieldPath must be a valid path: .name or ['name']"));
      return '';
    }
    let at: Schema | undefined = schema;
    let text = '';
    for (const name of names) {
      const property: Schema | undefined = at?.properties?.[name];
      const value: Schema | undefined =
        typeof at?.additionalProperties === 'object' ? at.additionalProperties : undefined;
      text += property === undefined ? `[${name}]` : `.${name}`;
      at = property ?? value;
    }
    if (at === undefined) {
      const why = 'fieldPath must be a valid path: does not refer to a valid field';
      this.errors.push(invalid(`${path}.fieldPath`, fieldPath, why));
    }
    return text;
  }
}

function factor(cost: number, most: number): string {
  const times = cost / most;
  return times > 100 ? 'factor of more than 100x' : `factor of ${times.toFixed(1)}x`;
}

const segment = /\.([A-Za-z_][\w-]*)|\['((?:[^'\\]|\\.)+)'\]/y;

/** `.spec.ports` or `['a.b']`, one after the other; undefined if it is neither. */
function parseFieldPath(text: string): string[] | undefined {
  const names: string[] = [];
  segment.lastIndex = 0;
  while (segment.lastIndex < text.length) {
    const found = segment.exec(text);
    if (found === null) return undefined;
    names.push(found[1] ?? found[2]!.replace(/\\(.)/g, '$1'));
  }
  return names;
}
