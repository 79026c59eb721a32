// What an expression costs at most, in steps, for values of a given extent. One walk over the expression: loops count as often
// as the longest list they may run over, texts by their length. Pure.

import type { ASTNode } from '@marcbachmann/cel-js';
import { type Extent, larger, listOf, mapKey, scalar } from './extent.ts';

interface Estimate {
  readonly cost: number;
  readonly extent: Extent;
}

export type Scope = ReadonlyMap<string, Extent>;

const stepsPerCharacter = 0.1;
const stepsPerPatternCharacter = 0.25;
const loops: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'existsOne', 'filter', 'map', 'sortBy']);
/** One step in Kubernetes, however long the text: such texts are short, although few schemas say so. */
const conversions: ReadonlySet<string> = new Set(['duration', 'timestamp', 'int', 'double', 'bool', 'string', 'size']);
const searches: ReadonlySet<string> = new Set(['linearMatches', 'find', 'findAll']);

export function costOf(expression: ASTNode, scope: Scope): number {
  return estimate(expression, scope).cost;
}

function estimate(node: ASTNode, scope: Scope): Estimate {
  switch (node.op) {
    case 'value':
      return { cost: 0, extent: scalar(typeof node.args === 'string' ? node.args.length : 1) };
    case 'id':
      return { cost: 1, extent: scope.get(node.args) ?? scalar() };
    case '.':
    case '.?': {
      const { cost, extent } = estimate(node.args[0], scope);
      return { cost: cost + 1, extent: extent.field(node.args[1]) };
    }
    case '[]':
    case '[?]': {
      const [from, at] = node.args.map((each) => estimate(each, scope)) as [Estimate, Estimate];
      return { cost: from.cost + at.cost + 1, extent: from.extent.item() };
    }
    case 'call':
      return estimateCall(node.args[0], undefined, { args: node.args[1], scope });
    case 'rcall':
      return estimateCall(node.args[0], node.args[1], { args: node.args[2], scope });
    case 'list':
      return estimateItems(node.args, scope);
    case 'map':
      return estimateItems(node.args.flat(), scope);
    case '?:': {
      const [condition, ...branches] = node.args;
      const [one, other] = branches.map((each) => estimate(each, scope)) as [Estimate, Estimate];
      const cost = estimate(condition, scope).cost + Math.max(one.cost, other.cost) + 1;
      return { cost, extent: larger(one.extent, other.extent) };
    }
    case '!_':
    case '-_':
      return { cost: estimate(node.args, scope).cost + 1, extent: scalar() };
    default:
      return estimateBinary(node.op, node.args as [ASTNode, ASTNode], scope);
  }
}

function estimateItems(nodes: readonly ASTNode[], scope: Scope): Estimate {
  const items = nodes.map((each) => estimate(each, scope));
  const cost = items.reduce((sum, item) => sum + item.cost, 1);
  return { cost, extent: listOf(items.length, items.map(({ extent }) => extent).reduce(larger, scalar(0))) };
}

function estimateBinary(op: string, nodes: readonly [ASTNode, ASTNode], scope: Scope): Estimate {
  const [left, right] = nodes.map((each) => estimate(each, scope)) as [Estimate, Estimate];
  const cost = left.cost + right.cost + 1;
  const [a, b] = [left.extent.length, right.extent.length];
  if (op === '&&' || op === '||') return { cost: cost - 1, extent: scalar() };
  if (op === 'in') return { cost: cost + b, extent: scalar() };
  if (op !== '+') return { cost: cost + stepsPerCharacter * Math.min(a, b), extent: scalar() };
  const both = larger(left.extent, right.extent);
  return { cost: cost + stepsPerCharacter * (a + b), extent: { ...both, length: a + b } };
}

interface Arguments {
  readonly args: readonly ASTNode[];
  readonly scope: Scope;
}

function estimateCall(name: string, receiver: ASTNode | undefined, { args, scope }: Arguments): Estimate {
  if (name === 'bind' && receiver?.op === 'id') return estimateBinding(args, scope);
  const from = receiver === undefined ? { cost: 0, extent: scalar(0) } : estimate(receiver, scope);
  if (receiver !== undefined && loops.has(name)) return estimateLoop(name, from, { args, scope });
  const given = args.map((each) => estimate(each, scope));
  const cost = given.reduce((sum, each) => sum + each.cost, from.cost + 1);
  // It looks whether the field is there, not at its value.
  if (name === 'has') return { cost, extent: scalar() };
  const lengths = [from, ...given].map(({ extent }) => extent.length);
  const [own = 0, pattern = 0] = lengths;
  if (searches.has(name)) {
    const steps = own * stepsPerCharacter * Math.max(1, pattern * stepsPerPatternCharacter);
    return { cost: cost + steps, extent: listOf(own, scalar(own)) };
  }
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (conversions.has(name) && [from, ...given].some(({ extent }) => extent.isOpen)) return { cost, extent: scalar() };
  return { cost: cost + stepsPerCharacter * total, extent: resultOf(name, from.extent, given, total) };
}

function resultOf(name: string, from: Extent, given: readonly Estimate[], total: number): Extent {
  if (name === 'join') return scalar(from.length * (from.item().length + (given[0]?.extent.length ?? 0)));
  if (name === 'split') return listOf(from.length, scalar(from.length));
  // In the worst case every character is replaced.
  if (name === 'replace') return scalar(from.length * Math.max(1, given[1]?.extent.length ?? 1));
  return given.map(({ extent }) => extent).reduce(larger, larger(from, scalar(Math.min(total, from.length))));
}

function estimateBinding([variable, value, body]: readonly ASTNode[], scope: Scope): Estimate {
  if (variable?.op !== 'id' || value === undefined || body === undefined) return { cost: 1, extent: scalar() };
  const bound = estimate(value, scope);
  const inside = estimate(body, new Map([...scope, [variable.args, bound.extent]]));
  return { cost: bound.cost + inside.cost + 1, extent: inside.extent };
}

function estimateLoop(name: string, from: Estimate, { args, scope }: Arguments): Estimate {
  const [variable, ...bodies] = args;
  const item = from.extent.isMap ? mapKey : from.extent.item();
  const inner = variable?.op === 'id' ? new Map([...scope, [variable.args, item]]) : scope;
  const inside = bodies.map((body) => estimate(body, inner));
  const each = inside.reduce((sum, { cost }) => sum + cost, 2);
  const { length } = from.extent;
  const result = name === 'map' ? listOf(length, inside.at(-1)?.extent ?? scalar()) : from.extent;
  return { cost: from.cost + 1 + length * each, extent: name === 'filter' || name === 'map' ? result : scalar() };
}
