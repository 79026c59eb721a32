// A connection that could not be made or broke: what was tried, why it failed, and what to look at.

const advice: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there; is the server running, and is the port right?',
  ENOTFOUND: 'no such host; check the name in the server address',
  EAI_AGAIN: 'the name could not be resolved just now; check the DNS server of this machine',
  EHOSTUNREACH: 'no route to that host; check the network between here and there',
  ENETUNREACH: 'no route to that network; check the network of this machine',
  ETIMEDOUT: 'the host does not answer; check firewalls between here and there',
  ECONNRESET: 'the other side dropped the connection; it may have restarted',
  EPIPE: 'the other side dropped the connection; it may have restarted',
  SELF_SIGNED_CERT_IN_CHAIN:
    'its certificate is from an authority that is not trusted here; check certificate-authority',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed; check certificate-authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'its certificate is from an authority that is not trusted here; check certificate-authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'its certificate is from an authority that is not trusted here; check certificate-authority',
  CERT_HAS_EXPIRED: 'its certificate has expired; renew it there, and check the clocks',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clocks',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name; check the server address or tls-server-name',
};

export class ConnectionError extends Error {
  readonly code: string;

  constructor(what: string, cause: unknown) {
    const code = codeOf(cause);
    const hint = advice[code];
    super(hint === undefined ? what : `${what}: ${hint}`, { cause });
    this.name = 'ConnectionError';
    this.code = code;
  }
}

/** Connecting to a name with several addresses fails with one error for each. */
function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError && cause.errors.length > 0) return codeOf(cause.errors[0]);
  const code = (cause as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : '';
}
