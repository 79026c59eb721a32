// An error of a home: the HTTP code, the reason and the details of its Status.

export interface ApiErrorDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[];
  readonly retryAfterSeconds?: number;
}

export interface ApiErrorOptions {
  readonly code: number;
  readonly reason: string;
  readonly details?: ApiErrorDetails;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

export class ApiError extends Error {
  readonly code: number;
  /** As in Kubernetes: `NotFound`, `Conflict`, …; empty when the answer was no Status. */
  readonly reason: string;
  readonly details: ApiErrorDetails | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: ApiErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ApiError';
    this.code = options.code;
    this.reason = options.reason;
    this.details = options.details;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export function isNotFound(error: unknown): boolean {
  return hasCode(error, 404);
}

/** The object changed since it was read, or a precondition did not hold. */
export function isConflict(error: unknown): boolean {
  return hasCode(error, 409) && error.reason !== 'AlreadyExists';
}

export function isAlreadyExists(error: unknown): boolean {
  return hasCode(error, 409) && error.reason === 'AlreadyExists';
}

/** The revision or continue token is older than what the home still knows: list again. */
export function isGone(error: unknown): boolean {
  return hasCode(error, 410);
}

/** The home has not come as far as the revision: it was put back to an earlier state, or lags far behind. */
export function isAhead(error: unknown): boolean {
  const causes = hasCode(error, 504) ? (error.details?.causes ?? []) : [];
  return causes.some(({ reason }) => reason === 'ResourceVersionTooLarge');
}

export function isInvalid(error: unknown): boolean {
  return hasCode(error, 422);
}

export function isForbidden(error: unknown): boolean {
  return hasCode(error, 403);
}

/** Its namespace is being deleted, or is gone: nothing new is taken there. */
export function isNamespaceEnding(error: unknown): boolean {
  const causes = isForbidden(error) ? ((error as ApiError).details?.causes ?? []) : [];
  if (causes.some(({ reason }) => reason === 'NamespaceTerminating')) return true;
  return isNotFound(error) && (error as ApiError).details?.kind === 'namespaces';
}

export function isUnauthorized(error: unknown): boolean {
  return hasCode(error, 401);
}

function hasCode(error: unknown, code: number): error is ApiError {
  return error instanceof ApiError && error.code === code;
}

/** A ResourceQuota is new, or its kind is: the home has not counted yet, and refuses until it has. */
export function isQuotaUncounted(error: unknown): boolean {
  return isForbidden(error) && (error as ApiError).message.includes('status unknown for quota: ');
}

/** A ResourceQuota of the namespace has no room for it. */
export function isQuotaExceeded(error: unknown): boolean {
  return isForbidden(error) && (error as ApiError).message.includes('exceeded quota: ');
}
