// Label and field selectors: from their text to a test of an object, or to a BadRequest that says what is wrong.

import { isLabelValue, isQualifiedName } from '../../kube/objects/names.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Kind } from '../model/kind.ts';
import { badRequest } from '../model/status-errors.ts';

export interface Selection {
  /** From the fields metadata.name and metadata.namespace, which the key shows already. */
  matchesPlace(place: { readonly namespace: string; readonly name: string }): boolean;
  /** The one name that can match, if the selector says so. */
  readonly name: string | undefined;
  /** False if the stored bytes, one character each, show without parsing that the object does not match; true says
   *  nothing. */
  mayMatch(latin1: string): boolean;
  /** Absent if the place says it all. */
  readonly matchesObject?: (object: AnyObject) => boolean;
  readonly isEverything: boolean;
}

export function parseSelection(kind: Kind, query: URLSearchParams): Selection {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '');
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '', kind);
  const ofPlace = fields.filter((term) => Object.hasOwn(placeFields, term.field));
  const ofObject = fields.filter((term) => !Object.hasOwn(placeFields, term.field));
  const tests = [...labels.map(testLabels), ...ofObject.map((term) => testField(term, kind))];
  const hints = labels.flatMap(hintOf);
  const named = ofPlace.find((term) => term.field === 'metadata.name' && term.isEqual);
  return {
    matchesPlace: (place) => ofPlace.every((term) => (placeFields[term.field]!(place) === term.value) === term.isEqual),
    name: named?.value,
    mayMatch: (latin1) => hints.every((hint) => latin1.includes(hint)),
    ...(tests.length === 0 ? {} : { matchesObject: (object: AnyObject) => tests.every((test) => test(object)) }),
    isEverything: labels.length === 0 && fields.length === 0,
  };
}

const placeFields: Readonly<Record<string, (place: { namespace: string; name: string }) => string>> = {
  'metadata.name': (place) => place.name,
  'metadata.namespace': (place) => place.namespace,
};

type LabelTerm =
  | { readonly operator: 'in' | 'notin'; readonly key: string; readonly values: ReadonlySet<string> }
  | { readonly operator: 'exists' | 'absent'; readonly key: string };

/** Every event is held against every term of every watch. */
const termsMax = 256;

function parseLabelSelector(text: string): LabelTerm[] {
  return bounded(splitTerms(text)).map((term) => parseLabelTerm(term, text));
}

function bounded(terms: string[]): string[] {
  if (terms.length <= termsMax) return terms;
  throw badRequest(
    `unable to parse requirement: the selector has ${terms.length} terms, at most ${termsMax} are taken`,
  );
}

/** Splits at commas outside parentheses. */
function splitTerms(text: string): string[] {
  if (text.trim() === '') return [];
  const terms: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(') depth++;
    else if (text[at] === ')') depth--;
    else if (text[at] === ',' && depth === 0) {
      terms.push(text.slice(start, at).trim());
      start = at + 1;
    }
    if (depth < 0 || depth > 1) throw unparsable(text, `unexpected ${JSON.stringify(text[at])}`);
  }
  if (depth !== 0) throw unparsable(text, 'a parenthesis is not closed');
  terms.push(text.slice(start).trim());
  return terms;
}

function unparsable(text: string, why: string) {
  return badRequest(`unable to parse requirement: selector ${JSON.stringify(text)}: ${why}`);
}

const setTerm = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/;
const equalTerm = /^([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)$/;
const existsTerm = /^(!?)\s*([^\s=!()]+)$/;

function parseLabelTerm(term: string, text: string): LabelTerm {
  let match = setTerm.exec(term);
  if (match !== null) {
    const values = new Set(match[3]!.split(',').map((value) => value.trim()));
    return checked({ operator: match[2] as 'in' | 'notin', key: match[1]!, values }, text);
  }
  match = equalTerm.exec(term);
  if (match !== null) {
    return checked(
      { operator: match[2] === '!=' ? 'notin' : 'in', key: match[1]!, values: new Set([match[3]!]) },
      text,
    );
  }
  match = existsTerm.exec(term);
  if (match !== null) return checked({ operator: match[1] === '!' ? 'absent' : 'exists', key: match[2]! }, text);
  throw unparsable(
    text,
    term === ''
      ? 'a term is empty'
      : `found ${JSON.stringify(term)}, expected a label, "!", "=", "!=", "in" or "notin"`,
  );
}

function checked(term: LabelTerm, text: string): LabelTerm {
  const [wrongKey] = isQualifiedName(term.key);
  if (wrongKey !== undefined) throw unparsable(text, `key: Invalid value: ${JSON.stringify(term.key)}: ${wrongKey}`);
  if (!('values' in term)) return term;
  for (const value of term.values) {
    const [wrong] = isLabelValue(value);
    if (wrong !== undefined)
      throw unparsable(text, `values[0][${term.key}]: Invalid value: ${JSON.stringify(value)}: ${wrong}`);
  }
  return term;
}

/** Texts contained in the JSON of every matching object. Keys and values of labels need no escapes. */
function hintOf(term: LabelTerm): string[] {
  if (term.operator === 'exists') return [`"${term.key}":"`];
  if (term.operator !== 'in') return [];
  const [value, ...others] = term.values;
  return [`"${term.key}":"${others.length === 0 ? `${value}"` : ''}`];
}

function testLabels(term: LabelTerm): (object: AnyObject) => boolean {
  return ({ metadata: { labels } }) => {
    const value = labels !== undefined && Object.hasOwn(labels, term.key) ? labels[term.key] : undefined;
    switch (term.operator) {
      case 'in':
        return value !== undefined && term.values.has(value);
      // As in Kubernetes, what has no such label is not in any set.
      case 'notin':
        return value === undefined || !term.values.has(value);
      case 'exists':
        return value !== undefined;
      case 'absent':
        return value === undefined;
    }
  };
}

interface FieldTerm {
  readonly field: string;
  readonly value: string;
  readonly isEqual: boolean;
}

function parseFieldSelector(text: string, kind: Kind): FieldTerm[] {
  if (text === '') return [];
  return bounded(splitFieldTerms(text)).map((term) => parseFieldTerm(term, text, kind));
}

/** A backslash before a comma, an equals sign or another backslash makes it part of the value. */
function splitFieldTerms(text: string): string[] {
  const terms = text.match(/(?:\\.|[^,\\])+/gs) ?? [];
  return terms.filter((term) => term !== '');
}

function parseFieldTerm(term: string, text: string, kind: Kind): FieldTerm {
  const match = /^([^=!\\]+)(==|=|!=)((?:\\[\\,=]|[^\\,=])*)$/s.exec(term);
  if (match === null)
    throw badRequest(`invalid selector: ${JSON.stringify(text)}; can't understand ${JSON.stringify(term)}`);
  const field = match[1]!;
  const known = [...Object.keys(placeFields), ...Object.keys(kind.behaviour.selectableFields ?? {})];
  if (!known.includes(field)) {
    const list = known.map((each) => JSON.stringify(each)).join(', ');
    throw badRequest(`field label not supported: ${JSON.stringify(field)} is not a known field selector: only ${list}`);
  }
  return { field, value: match[3]!.replace(/\\(.)/gs, '$1'), isEqual: match[2] !== '!=' };
}

function testField(term: FieldTerm, kind: Kind): (object: AnyObject) => boolean {
  const read = kind.behaviour.selectableFields![term.field]!;
  return (object) => (read(object) === term.value) === term.isEqual;
}
