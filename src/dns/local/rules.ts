// Rules for names that are not ours: rewrites, which answer with an alias, and templates, which answer with records made from
// the name. Reads and checks them; plain data, so that a worker thread can be given it. A rule is applied to the name that was
// asked, once: what it leads to is not rewritten again, and rules that lead round in a circle are refused.

import { rcode, recordType } from '../../base/dns/codes.ts';
import { isDnsUnder, withoutFinalDot } from '../../base/dns/labels.ts';
import { encodeName } from '../../base/dns/name.ts';
import { parseAddress } from '../../base/net/ip.ts';
import { yaml } from '../../base/yaml.ts';
import { compileRegex, unknownGroup } from './regex.ts';

type NameMatch =
  | { readonly kind: 'exact'; readonly name: string }
  /** The name itself and all below it. */
  | { readonly kind: 'suffix'; readonly name: string }
  | { readonly kind: 'regex'; readonly source: string };

export interface LocalRule {
  readonly match: NameMatch;
  readonly result:
    | { readonly kind: 'rewrite'; readonly to: string }
    /** Texts of records by type; `$1` stands for a group of the pattern. */
    | { readonly kind: 'records'; readonly records: readonly (readonly [type: number, text: string])[] }
    | { readonly kind: 'rcode'; readonly rcode: number };
}

const rulesMax = 1000;
/** Each costs every name that is not ours. */
const regexesMax = 100;
const rcodes = ['NXDOMAIN', 'NOERROR', 'REFUSED', 'SERVFAIL'] as const;
const templateTypes = ['A', 'AAAA', 'TXT'] as const;

/** `rewrites:` and `templates:` in YAML; throws with the rule that is wrong. */
export function parseRules(text: string, where: string): LocalRule[] {
  const rules = [...listIn(text, where, 'rewrites', rewriteOf), ...listIn(text, where, 'templates', templateOf)];
  checkRules(rules, where);
  return rules;
}

/** Checks the rules of one file, or of all together. */
export function checkRules(rules: readonly LocalRule[], where: string): void {
  if (rules.length > rulesMax) throw new Error(`${where}: at most ${rulesMax} rules`);
  if (rules.filter(({ match }) => match.kind === 'regex').length > regexesMax)
    throw new Error(`${where}: at most ${regexesMax} rules with a pattern`);
  refuseCircles(rules, where);
}

type Fields = Readonly<Record<string, unknown>>;

function listIn(text: string, where: string, key: string, read: (fields: Fields) => LocalRule): LocalRule[] {
  let all: unknown;
  try {
    all = yaml().parse(text, { maxAliasCount: 0 }) ?? {};
  } catch (cause) {
    throw new Error(`${where}: ${(cause as Error).message.split('\n')[0]}`, { cause });
  }
  if (!isFields(all)) throw new Error(`${where}: want the keys rewrites and templates`);
  const unknown = Object.keys(all).find((name) => name !== 'rewrites' && name !== 'templates');
  if (unknown !== undefined) throw new Error(`${where}: ${unknown}: want the keys rewrites and templates`);
  const list = all[key] ?? [];
  if (!Array.isArray(list)) throw new Error(`${where}: ${key}: want a list`);
  return list.map((fields: unknown, index) => {
    try {
      if (!isFields(fields)) throw new Error('want a rule such as {exact: old.example, to: new.example}');
      return read(fields);
    } catch (cause) {
      throw new Error(`${where}: ${key} ${index + 1}: ${(cause as Error).message}`, { cause });
    }
  });
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function rewriteOf(fields: Fields): LocalRule {
  const to = textOf(fields, 'to');
  const match = matchOf(fields, ['to'], [to]);
  // What a pattern makes is known only when it matches.
  const name = match.kind === 'regex' ? withoutFinalDot(to) : nameOf('to', to);
  if (match.kind === 'suffix' && isDnsUnder(name, match.name))
    throw new Error(`${match.name} leads to ${name}, which it matches itself: a loop`);
  return { match, result: { kind: 'rewrite', to: name } };
}

function templateOf(fields: Fields): LocalRule {
  const code = fields['rcode'];
  const records = templateTypes.flatMap((type) =>
    [fields[type] ?? []].flat().map((text: unknown) => [recordType[type], textIn(type, text)] as const),
  );
  const texts = records.map(([, text]) => text);
  const match = matchOf(fields, [...templateTypes, 'rcode'], texts);
  if (code === undefined && records.length > 0) {
    if (match.kind !== 'regex') for (const [type, text] of records) checkAddress(type, text);
    return { match, result: { kind: 'records', records } };
  }
  if (records.length > 0 || !rcodes.some((known) => known === code))
    throw new Error(`want either rcode (${rcodes.join(', ')}) or records (${templateTypes.join(', ')})`);
  return { match, result: { kind: 'rcode', rcode: rcode[code as (typeof rcodes)[number]] } };
}

function checkAddress(type: number, text: string): void {
  const size = type === recordType.A ? 4 : type === recordType.AAAA ? 16 : undefined;
  if (size !== undefined && parseAddress(text)?.length !== size)
    throw new Error(`${text}: want an IPv${size === 4 ? 4 : 6} address`);
}

/** `others` are the fields beside it, and `texts` may name groups of its pattern. */
function matchOf(fields: Fields, others: readonly string[], texts: readonly string[]): NameMatch {
  const kinds = (['exact', 'suffix', 'regex'] as const).filter((kind) => fields[kind] !== undefined);
  const unknown = Object.keys(fields).find((key) => !others.includes(key) && !kinds.some((kind) => kind === key));
  if (unknown !== undefined) throw new Error(`${unknown}: no such field`);
  const [kind, more] = kinds;
  if (kind === undefined || more !== undefined) throw new Error('want one of exact, suffix and regex');
  const text = textOf(fields, kind);
  if (kind !== 'regex') return { kind, name: nameOf(kind, text) };
  const compiled = compileRegex(text);
  if ('problem' in compiled) throw new Error(`regex ${text}: ${compiled.problem}`);
  for (const each of texts) {
    const unknownReference = unknownGroup(compiled.regex, each);
    if (unknownReference !== undefined) throw new Error(`regex ${text}: it has no group ${unknownReference}`);
  }
  return { kind, source: text };
}

function textOf(fields: Fields, key: string): string {
  return textIn(key, fields[key]);
}

function textIn(key: string, value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.length > 1000) throw new Error(`${key}: want a text`);
  return value;
}

function nameOf(key: string, text: string): string {
  try {
    encodeName(text);
  } catch (cause) {
    throw new Error(`${key}: ${(cause as Error).message}`, { cause });
  }
  return withoutFinalDot(text).toLowerCase();
}

/** Exact and suffix rules, followed from each name that they lead to. */
function refuseCircles(rules: readonly LocalRule[], where: string): void {
  const next = (name: string) => {
    const found = rules.find(({ match: { kind, ...match }, result }) => {
      if (kind === 'regex' || result.kind !== 'rewrite' || !('name' in match)) return false;
      return kind === 'exact' ? match.name === name : isDnsUnder(name, match.name);
    });
    if (found?.result.kind !== 'rewrite' || found.match.kind === 'regex') return undefined;
    const { match, result } = found;
    return match.kind === 'exact' ? result.to : `${name.slice(0, name.length - match.name.length)}${result.to}`;
  };
  for (const { match, result } of rules) {
    if (match.kind === 'regex' || result.kind !== 'rewrite') continue;
    const seen = new Set([match.name]);
    for (let name: string | undefined = result.to; name !== undefined; name = next(name)) {
      if (seen.has(name) || seen.size > stepsMax)
        throw new Error(
          `${where}: the rewrites of ${match.name} lead round in a circle: ${[...seen, name].join(' -> ')}`,
        );
      seen.add(name);
    }
  }
}

const stepsMax = 8;
