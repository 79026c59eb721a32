// How a gRPC call ends: status codes, the trailers that carry them, and the code of a failed connection. Pure.

/** The gRPC status codes that we send or act on. */
export const codes = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export type Code = (typeof codes)[keyof typeof codes];

/** Beyond this a proxy on the way may refuse the trailers as too large. */
const reasonLengthMax = 4096;

// Percent-encoded, as the gRPC protocol asks of grpc-message.
export function statusTrailers(code: Code, reason: string): Record<string, string> {
  const text = encodeURIComponent(reason.slice(0, reasonLengthMax).toWellFormed());
  return { 'grpc-status': String(code), ...(reason === '' ? {} : { 'grpc-message': text }) };
}

export interface CallStatus {
  readonly code: Code;
  readonly reason: string;
}

/** Undefined when these headers do not end a call. */
export function statusIn(headers: Readonly<Record<string, unknown>>): CallStatus | undefined {
  const status = headers['grpc-status'];
  if (status === undefined) return undefined;
  const known = Object.values<number>(codes).includes(Number(status));
  return {
    code: known ? (Number(status) as Code) : codes.unknown,
    reason: decodeReason(String(headers['grpc-message'] ?? '')),
  };
}

// A certificate problem is a matter of configuration: retrying would not help.
export function codeOfFailure(error: Error): Code {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const isAboutCertificates = /CERT|UNKNOWN_CA|ACCESS_DENIED|UNABLE_TO_VERIFY|ERR_PEER_IDENTITY/.test(code);
  return isAboutCertificates ? codes.unauthenticated : codes.unavailable;
}

function decodeReason(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
