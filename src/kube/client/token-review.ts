// Asks the home whose token a text is. The home checks signature, time, audience, and that what the token is bound to is
// still there.

import { isObject, valueIn } from '../../base/json.ts';
import type { AnyObject, ResourceType } from '../objects/object.ts';
import type { Client } from './client.ts';

const tokenReviewType: ResourceType = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
  kind: 'TokenReview',
  isNamespaced: false,
};
const answerMsMax = 5_000;

export interface ReviewedToken {
  readonly username: string;
  /** Name of the Pod that it is bound to; empty if it is bound to none. */
  readonly pod: string;
}

/** Undefined for a token that is not valid for any of the audiences. */
export async function reviewToken(
  client: Client,
  token: string,
  audiences: readonly string[],
): Promise<ReviewedToken | undefined> {
  const question: AnyObject = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: { name: '' },
    spec: { token, audiences: [...audiences] },
  };
  const { status } = await client.create(tokenReviewType, question, { timeoutMs: answerMsMax });
  if (!isObject(status) || status['authenticated'] !== true) return undefined;
  const { user, audiences: granted } = status;
  if (!Array.isArray(granted) || !granted.some((one) => audiences.includes(one as string))) return undefined;
  const username = isObject(user) ? user['username'] : undefined;
  const pod = claimOf(token, ['kubernetes.io', 'pod', 'name']);
  return { username: typeof username === 'string' ? username : '', pod: typeof pod === 'string' ? pod : '' };
}

/** As good as the token: read before it was reviewed, a claim is anybody's word. */
function claimOf(token: string, path: readonly string[]): unknown {
  return valueIn(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'), path);
}
