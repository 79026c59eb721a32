// Why a service was refused, in a text that fits into a message, a status and a log line, however much was wrong with it
// and however long what was wrong was. Pure.

import { ApiError } from '../../kube/objects/api-error.ts';

/** Longest reason that is sent and shown. */
export const reasonLengthMax = 1024;
/** Longest key of a service; longer ones are shown cut. */
export const idLengthMax = 255;

const partLengthMax = 480;
/** Room for `; and 10000 more`. */
const moreLengthMax = 24;

/** As many of them as there is room for, and how many more there are. */
export function reasonOf(parts: readonly string[]): string {
  let text = '';
  let shown = 0;
  for (const part of parts) {
    const next = (shown === 0 ? '' : '; ') + cutText(part, partLengthMax);
    if (text.length + next.length > reasonLengthMax - moreLengthMax) break;
    text += next;
    shown += 1;
  }
  return shown === parts.length ? text : `${text}; and ${parts.length - shown} more`;
}

export function cutText(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1).toWellFormed()}…`;
}

/** The reason for the owner why our home refused a service: the fields, and nothing about our storage. */
export function homeRefusal(error: ApiError): string {
  const causes = error.details?.causes ?? [];
  if (causes.length > 0) return reasonOf(causes.map(({ field, message }) => `${fieldOf(field)}: ${message ?? ''}`));
  if (isTooLarge(error)) return 'the service: Too long: it is larger than what can be kept here';
  if (error.code === 403) return 'the service: Forbidden: it may not be kept here';
  return 'the service: Invalid value: it cannot be kept here';
}

/** The fault is in what was to be written: the same again would be refused again. */
export function isRefusedForGood(error: unknown): error is ApiError {
  return error instanceof ApiError && ([400, 413, 422].includes(error.code) || isTooLarge(error));
}

// A Kubernetes over etcd says so with the code of a fault of its own.
function isTooLarge({ code, message }: ApiError): boolean {
  return code === 413 || (code === 500 && message.includes('request is too large'));
}

function fieldOf(field = 'the service'): string {
  return field.startsWith('spec.') ? field.slice('spec.'.length) : field;
}
