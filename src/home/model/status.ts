// The error of a request as a Kubernetes Status. One table from reason to HTTP code.

import type { FieldError } from '../../kube/objects/field-error.ts';

const codes = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Gone: 410,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const;

export type StatusReason = keyof typeof codes;

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: { reason: string; message: string; field: string }[];
  retryAfterSeconds?: number;
}

export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: Readonly<Record<string, string>>;
  status: 'Success' | 'Failure';
  message?: string;
  reason?: StatusReason;
  details?: StatusDetails;
  code: number;
}

export interface StatusErrorOptions {
  readonly details?: StatusDetails;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

export class StatusError extends Error {
  readonly reason: StatusReason;
  readonly details: StatusDetails | undefined;
  /** Metadata of the Status itself: for an expired list, how to continue. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(reason: StatusReason, message: string, options?: StatusErrorOptions) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.details = options?.details;
    this.metadata = options?.metadata ?? {};
  }

  get code(): number {
    return codes[this.reason];
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.metadata,
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      details: this.details,
      code: this.code,
    };
  }
}

export interface StatusSubject {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
}

type Cause = NonNullable<StatusDetails['causes']>[number];

/** More than a person reads; keeps an answer small however wrong the request is. */
const causesMax = 500;
const causesLengthMax = 512 * 1024;
const textLengthMax = 8192;

/** 422 with every field error as a cause, in the words kubectl shows. */
export function invalidObject(subject: StatusSubject, errors: readonly FieldError[]): StatusError {
  const causes = causesOf(errors);
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  if (causes.length < errors.length) texts.push(`and ${errors.length - causes.length} more`);
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  const qualified = subject.group === '' ? subject.kind : `${subject.kind}.${subject.group}`;
  return new StatusError('Invalid', `${qualified} ${JSON.stringify(subject.name)} is invalid: ${list}`, {
    details: { name: subject.name, group: subject.group, kind: subject.kind, causes },
  });
}

/** As many as fit. A field may have a name of a megabyte, and many errors below it. */
function causesOf(errors: readonly FieldError[]): Cause[] {
  const causes: Cause[] = [];
  let length = 0;
  for (const { reason, message, field } of errors) {
    const cause = { reason, message: cut(message), field: cut(field) };
    length += cause.message.length + cause.field.length;
    if (causes.length === causesMax || length > causesLengthMax) break;
    causes.push(cause);
  }
  return causes;
}

function cut(text: string): string {
  return text.length > textLengthMax ? `${text.slice(0, textLengthMax)}...` : text;
}
