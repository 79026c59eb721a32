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

/** More than a person reads; keeps an answer small however wrong the request is. */
const causesMax = 500;

/** 422 with every field error as a cause, in the words kubectl shows. */
export function invalidObject(subject: StatusSubject, errors: readonly FieldError[]): StatusError {
  const told = errors.slice(0, causesMax);
  const texts = told.map((error) => `${error.field}: ${error.message}`);
  if (told.length < errors.length) texts.push(`and ${errors.length - told.length} more`);
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  const qualified = subject.group === '' ? subject.kind : `${subject.kind}.${subject.group}`;
  return new StatusError('Invalid', `${qualified} ${JSON.stringify(subject.name)} is invalid: ${list}`, {
    details: {
      name: subject.name,
      group: subject.group,
      kind: subject.kind,
      causes: told.map(({ reason, message, field }) => ({ reason, message, field })),
    },
  });
}
