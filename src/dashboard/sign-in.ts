// The text that a person signs in with: a token for all homes, or one for each (`east=TOKEN west=TOKEN`). Pure. A token that
// names its home is sent nowhere else.

export interface SignIn {
  /** Undefined if none was given for that home. */
  tokenFor(home: string): string | undefined;
}

const lengthMax = 64_000;
const tokenPattern = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Undefined if the text is no token. */
export function parseSignIn(text: string): SignIn | undefined {
  if (text.length > lengthMax) return undefined;
  const byHome = new Map<string, string>();
  let forAll: string | undefined;
  for (const item of text.split(/[\s,]+/).filter((one) => one !== '')) {
    const [, home, token] = /^([a-z0-9][-a-z0-9.@]*)=(.{20,})$/i.exec(item) ?? [];
    if (home !== undefined && token !== undefined && tokenPattern.test(token)) byHome.set(home, token);
    else if (tokenPattern.test(item) && forAll === undefined) forAll = item;
    else return undefined;
  }
  if (forAll === undefined && byHome.size === 0) return undefined;
  return { tokenFor: (home) => byHome.get(home) ?? forAll };
}

export interface TokenClaims {
  /** `system:serviceaccount:shop:viewer`, or empty if the token does not say. */
  readonly subject: string;
  /** Namespace of a service account. */
  readonly namespace: string | undefined;
  readonly expiresMs: number | undefined;
}

/**
 * Reads the claims of a JWT without checking them: for the page's header and as a first guess of the bearer's rights.
 */
export function readClaims(token: string): TokenClaims {
  try {
    const body = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
    const claims = JSON.parse(body) as Record<string, unknown>;
    const account = claims['kubernetes.io'] as { namespace?: unknown } | undefined;
    const { sub, exp } = claims;
    return {
      subject: typeof sub === 'string' ? sub.slice(0, 200) : '',
      namespace: typeof account?.namespace === 'string' ? account.namespace : undefined,
      expiresMs: typeof exp === 'number' ? exp * 1000 : undefined,
    };
  } catch {
    return { subject: '', namespace: undefined, expiresMs: undefined };
  }
}
