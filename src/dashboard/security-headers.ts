// The headers of every answer of the dashboard. Scripts and styles come from files of this server alone, nothing is framed,
// nothing is sent elsewhere. Pure.

export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

/** Files whose name has a digest of their content never change; everything else is asked for anew. */
export function cacheHeader(path: string): Record<string, string> {
  const isHashed = /-[A-Za-z0-9_-]{8,}\.[a-z0-9]+$/.test(path);
  return { 'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-store' };
}
