// The options of a list or a watch besides its selectors, validated as in Kubernetes.

import { type FieldError, forbidden, notSupported } from '../../kube/objects/field-error.ts';
import { isTrue } from '../model/route.ts';
import { invalidObject } from '../model/status.ts';
import { badRequest } from '../model/status-errors.ts';

export interface ListOptions {
  readonly limit: number;
  readonly continueToken: string;
  /** Undefined when not given; 0 says that any state will do. */
  readonly revision: number | undefined;
  readonly match: '' | 'Exact' | 'NotOlderThan';
  readonly sendInitialEvents: boolean | undefined;
  readonly allowBookmarks: boolean;
  /** 0 when not given. */
  readonly timeoutSeconds: number;
}

export function parseListOptions(query: URLSearchParams, isWatch: boolean): ListOptions {
  const sendInitialEvents = query.get('sendInitialEvents');
  const options: ListOptions = {
    limit: parseNumber(query, 'limit'),
    continueToken: query.get('continue') ?? '',
    revision: parseRevision(query.get('resourceVersion')),
    match: (query.get('resourceVersionMatch') ?? '') as ListOptions['match'],
    sendInitialEvents: sendInitialEvents === null ? undefined : isTrue(sendInitialEvents),
    allowBookmarks: isTrue(query.get('allowWatchBookmarks')),
    timeoutSeconds: parseNumber(query, 'timeoutSeconds'),
  };
  const errors = isWatch ? checkWatch(options) : checkList(options);
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind: 'ListOptions', name: '' }, errors);
  return options;
}

function parseNumber(query: URLSearchParams, name: string): number {
  const text = query.get(name);
  if (text === null || text === '') return 0;
  if (!/^-?\d{1,15}$/.test(text)) throw badRequest(`${name}: ${JSON.stringify(text)} is not a whole number`);
  return Math.max(0, Number(text));
}

export function parseRevision(text: string | null): number | undefined {
  if (text === null || text === '') return undefined;
  // A store that was restored has revisions of 16 digits.
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw badRequest(`resourceVersion: Invalid value: ${JSON.stringify(text)}: must be a whole number`);
  return Number(text);
}

function checkMatch(options: ListOptions): FieldError[] {
  if (options.match === '' || options.match === 'Exact' || options.match === 'NotOlderThan') return [];
  return [notSupported('resourceVersionMatch', options.match, ['Exact', 'NotOlderThan', ''])];
}

function checkList(options: ListOptions): FieldError[] {
  const errors = checkMatch(options);
  if (options.match !== '') {
    if (options.revision === undefined) {
      errors.push(forbidden('resourceVersionMatch', 'only together with resourceVersion'));
    }
    if (options.continueToken !== '') {
      errors.push(forbidden('resourceVersionMatch', 'not together with continue'));
    }
    if (options.match === 'Exact' && options.revision === 0) {
      errors.push(forbidden('resourceVersionMatch', 'Exact needs a resourceVersion other than 0'));
    }
  }
  if (options.sendInitialEvents !== undefined) {
    errors.push(forbidden('sendInitialEvents', 'only for watch'));
  }
  if (options.continueToken !== '' && options.revision !== undefined && options.revision !== 0) {
    throw badRequest('resourceVersion and continue exclude each other: the token has a revision of its own');
  }
  return errors;
}

function checkWatch(options: ListOptions): FieldError[] {
  const errors = checkMatch(options);
  if (options.sendInitialEvents !== undefined && options.match !== 'NotOlderThan') {
    const why = 'must be NotOlderThan with sendInitialEvents';
    errors.push(forbidden('resourceVersionMatch', why));
  }
  if (options.sendInitialEvents === undefined && options.match !== '') {
    const why = 'only together with sendInitialEvents';
    errors.push(forbidden('resourceVersionMatch', why));
  }
  return errors;
}
