// SPIFFE identities (SPIFFE-ID section 2): a trust domain, then a path or none. No query, no fragment, no port, no empty
// or dotted segment: texts that only begin like an identity are none. Pure.

export interface SpiffeId {
  readonly domain: string;
  /** Empty, or from its first slash on. */
  readonly path: string;
}

const lengthMax = 2048;
const pattern = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)*)$/;

/** Undefined for a text that is no SPIFFE identity. */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  const [, domain, path = ''] = (text.length <= lengthMax && pattern.exec(text)) || [];
  if (domain === undefined || path.split('/').some((segment) => segment === '.' || segment === '..')) return undefined;
  return { domain, path };
}
