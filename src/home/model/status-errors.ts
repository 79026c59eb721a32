// The refusals of the request path, with the reasons Kubernetes gives; its short phrases are kept where programs match
// on them.

import { nestingDepthMax } from '../schema/walk.ts';
import { CommitTooLargeError, CompactedError, FutureRevisionError, StoreUnavailableError } from '../store/store.ts';
import type { Attributes, User } from './access.ts';
import type { Served } from './registry.ts';
import { type StatusDetails, StatusError } from './status.ts';

export function notFound(served: Served, name: string): StatusError {
  return new StatusError('NotFound', `${served.resource} ${JSON.stringify(name)} not found`, {
    details: detailsOf(served, name),
  });
}

export function noSuchResource(): StatusError {
  return new StatusError('NotFound', 'the server could not find the requested resource', { details: {} });
}

export function methodNotAllowed(): StatusError {
  return new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource', {
    details: {},
  });
}

export function alreadyExists(served: Served, name: string): StatusError {
  return new StatusError('AlreadyExists', `${served.resource} ${JSON.stringify(name)} already exists`, {
    details: detailsOf(served, name),
  });
}

export function conflict(served: Served, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${served.resource} ${JSON.stringify(name)}: ${why}`;
  return new StatusError('Conflict', message, { details: detailsOf(served, name) });
}

export function wasModified(served: Served, name: string): StatusError {
  const why = 'the object has been modified; please apply your changes to the latest version and try again';
  return conflict(served, name, why);
}

export function badRequest(message: string, cause?: unknown): StatusError {
  return new StatusError('BadRequest', message, cause === undefined ? {} : { cause });
}

export function tooManyValues(valuesMax: number): StatusError {
  const message = `Request entity too large: more than ${valuesMax} members and items; split it into several objects`;
  return new StatusError('RequestEntityTooLarge', message);
}

export function nestedTooDeep(cause?: unknown): StatusError {
  return badRequest(`the object provided is nested more than ${nestingDepthMax} levels deep`, cause);
}

export function detailsOf(served: Served, name: string): StatusDetails {
  const { group, plural } = served.kind;
  return { name, ...(group === '' ? {} : { group }), kind: plural };
}

export function forbidden(user: User, attributes: Attributes, reason: string): StatusError {
  const who = `User ${JSON.stringify(user.name)} cannot ${attributes.verb}`;
  const because = reason === '' ? '' : `: ${reason}`;
  if (attributes.path !== undefined) {
    const message = `forbidden: ${who} path ${JSON.stringify(attributes.path)}${because}`;
    return new StatusError('Forbidden', message, { details: {} });
  }
  const { group, resource, subresource, namespace, name } = attributes;
  const subject = group === '' ? resource : `${resource}.${group}`;
  const what = JSON.stringify(subresource === '' ? resource : `${resource}/${subresource}`);
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  const named = name === '' ? subject : `${subject} ${JSON.stringify(name)}`;
  const message = `${named} is forbidden: ${who} resource ${what} in API group ${JSON.stringify(group)} ${where}${because}`;
  return new StatusError('Forbidden', message, {
    details: { ...(name === '' ? {} : { name }), ...(group === '' ? {} : { group }), kind: resource },
  });
}

export const tooOldForList = 'the resourceVersion is too old to list at; list without one';

export function expired(message: string): StatusError {
  return new StatusError('Expired', message);
}

export function resourceVersionTooLarge(asked: number, current: number): StatusError {
  return new StatusError('Timeout', `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version', field: '' }],
      retryAfterSeconds: 1,
    },
  });
}

export function tooManyRequests(message: string): StatusError {
  return new StatusError('TooManyRequests', message, { details: { retryAfterSeconds: 1 } });
}

/** One table from errors to Status. */
export function asStatusError(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  if (error instanceof CompactedError) {
    return expired(tooOldForList);
  }
  if (error instanceof FutureRevisionError) return resourceVersionTooLarge(0, error.newest);
  if (error instanceof StoreUnavailableError) {
    return new StatusError('ServiceUnavailable', error.message, {
      details: { retryAfterSeconds: 5 },
      cause: error,
    });
  }
  if (error instanceof CommitTooLargeError) return new StatusError('RequestEntityTooLarge', error.message);
  if (error instanceof RangeError && error.message.includes('call stack')) {
    return nestedTooDeep(error);
  }
  const text = error instanceof Error ? error.message : String(error);
  return new StatusError('InternalError', `Internal error occurred: ${text}`, {
    details: { causes: [{ reason: '', message: text, field: '' }] },
    cause: error,
  });
}
