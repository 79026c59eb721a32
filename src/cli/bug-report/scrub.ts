// A second guard behind the list of kept fields: takes out of texts what looks like a key, a token or a password, and finds
// known secrets in any encoding. Pure.

const leftOut = '(left out)';

const looksSecret: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g, leftOut],
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, leftOut],
  [/\bportolan(?:\d+\.|-peer-)[\w-]+(?:\.[\w-]+)?/g, leftOut],
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${leftOut}`],
  [/(\/\/)[^\s/@:"]+:[^\s/@"]+@/g, `$1${leftOut}@`],
  [
    /\b(pass(?:word|wd)?|secret|token|api[-_]?key|private[-_]?key)(["']?\s*[:=]\s*["']?)(?!\s*[{[])[^\s"',;})]{4,}/gi,
    `$1$2${leftOut}`,
  ],
];
/** Base64 or hex of 24 bytes and more; names of objects have no upper case. */
const longWord = /[A-Za-z0-9+/_-]{32,}={0,2}/g;

export function scrub(text: string): string {
  const plain = looksSecret.reduce((before, [pattern, instead]) => before.replace(pattern, instead), text);
  return plain.replace(longWord, (word) => (isRandom(word) ? leftOut : word));
}

function isRandom(word: string): boolean {
  if (/^[0-9a-f]{32,}$/i.test(word) && /\d/.test(word) && /[a-f]/i.test(word)) return true;
  return /[a-z]/.test(word) && /[A-Z]/.test(word) && /\d/.test(word);
}

/** How a secret may be spelled: as it is, in base64, base64url and hex. A key in PEM counts line by line. */
export function spellingsOf(secret: string): string[] {
  const lines = secret.includes('-----BEGIN')
    ? secret.split('\n').filter((line) => line.length > 16 && !line.startsWith('-'))
    : [];
  return [secret.trim(), ...lines].flatMap((text) => {
    const bytes = Buffer.from(text);
    // Inside longer base64 the first and the last characters depend on the neighbours.
    const inside = [0, 1, 2].map((shift) =>
      Buffer.concat([Buffer.alloc(shift), bytes])
        .toString('base64')
        .slice(4, -4),
    );
    const base64 = [bytes.toString('base64').replace(/=+$/, ''), ...inside.filter((piece) => piece.length >= 12)];
    return [
      text,
      ...base64,
      ...base64.map((piece) => piece.replaceAll('+', '-').replaceAll('/', '_')),
      bytes.toString('hex'),
    ];
  });
}

/** Whether one of the secrets stands in the text. */
export function holdsSecret(text: string, secrets: readonly string[]): boolean {
  return secrets
    .filter((secret) => secret.trim().length >= 8)
    .some((secret) => spellingsOf(secret).some((one) => text.includes(one)));
}
