// Object names made of other names, never longer than Kubernetes allows and still different for different inputs.

import { createHash } from 'node:crypto';

const nameLengthMax = 253;
const digestLength = 16;

/** The text itself if it fits, else its beginning and a digest of all of it. */
export function boundedName(text: string): string {
  if (text.length <= nameLengthMax) return text;
  const head = text.slice(0, nameLengthMax - digestLength - 2).replace(/[^a-z0-9]+$/, '');
  return `${head}-x${digestOf(text)}`;
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, digestLength);
}
