// A one-use introduction between two meshes: the holder of its secret may send us its address and trust bundle once,
// and becomes a Peer. The token carries ours to it. An introduction from which no Peer comes can be used again.

import { createHash } from 'node:crypto';
import type { PlainAnswer } from '../../base/grpc/server-options.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError, isAlreadyExists, isNotFound } from '../../kube/objects/api-error.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type Peer, peerType } from '../kinds/peer.ts';
import {
  type Introduction,
  type IntroductionReply,
  introductionName,
  parseIntroductionReply,
} from '../rules/peer-introduction.ts';
import { homeRefusal, isRefusedForGood } from '../rules/reason.ts';

export interface IntroduceOptions {
  readonly client: Client;
  /** Where the Peer is made. */
  readonly namespace: string;
  /** Where introductions lie. */
  readonly secretsNamespace: string;
  readonly nowMs: number;
  readonly body: Buffer;
  /** Ends when a call of this peer would be taken. */
  readonly untilKnown: (peer: string) => Promise<void>;
}

/** Answers the other mesh; the Peer exists when it answers 200. */
export async function introduce(options: IntroduceOptions): Promise<PlainAnswer> {
  const { client, namespace, secretsNamespace, nowMs } = options;
  const reply = parseIntroductionReply(options.body.toString('utf8'));
  if (reply === undefined) return refuse(400, 'not an introduction: secret, address, domain and bundle are needed');
  const found = await findSecret(client, secretsNamespace, reply.secret);
  if (found === undefined) return refuse(401, 'this introduction is unknown, or was used already');
  // Taken first, on condition that it is unused: of two concurrent holders one is refused.
  const isTaken = await take(client, found);
  if (!isTaken) return refuse(401, 'this introduction is unknown, or was used already');
  const terms = termsIn(found);
  if (terms === undefined || terms.expiresMs < nowMs) return refuse(401, 'this introduction has expired');
  try {
    await client.create<Peer>(peerType, peerOf(namespace, terms, reply));
  } catch (error) {
    const { name, labels } = found.metadata;
    await client.create<Secret>(secretType, { ...found, metadata: { name, namespace: secretsNamespace, labels } });
    return whyNot(error, terms.peer);
  }
  // It dials as soon as it has our answer.
  await options.untilKnown(terms.peer);
  return { status: 200, body: JSON.stringify({ peer: terms.peer }) };
}

function peerOf(namespace: string, { peer, allowedDomains }: Introduction, reply: IntroductionReply): Peer {
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Peer',
    metadata: { name: peer, namespace },
    spec: {
      ...(reply.address === '' ? {} : { address: reply.address }),
      trust: { domain: reply.domain, bundle: reply.bundle },
      allowedDomains: [...allowedDomains],
    },
  };
}

function whyNot(error: unknown, peer: string): PlainAnswer {
  const again = 'the token can be used again';
  if (isAlreadyExists(error)) return refuse(409, `a Peer ${peer} is known there already; once it is removed ${again}`);
  if (isRefusedForGood(error)) return refuse(422, `${homeRefusal(error)}; ${again}`);
  return refuse(503, `the introduction could not be taken now; ${again}`);
}

async function findSecret(client: Client, namespace: string, secret: string): Promise<Secret | undefined> {
  try {
    return await client.get<Secret>(secretType, { namespace, name: introductionName(hashOf(secret)) });
  } catch {
    return undefined;
  }
}

async function take(client: Client, secret: Secret): Promise<boolean> {
  const { namespace, name, uid } = secret.metadata;
  try {
    await client.delete(secretType, { namespace, name }, uid === undefined ? {} : { preconditions: { uid } });
    return true;
  } catch (error) {
    if (isNotFound(error) || (error instanceof ApiError && error.code === 409)) return false;
    throw error;
  }
}

export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function termsIn(secret: Secret): Introduction | undefined {
  const text = Buffer.from(secret.data?.['terms'] ?? '', 'base64').toString('utf8');
  try {
    return JSON.parse(text) as Introduction;
  } catch {
    return undefined;
  }
}

function refuse(status: number, message: string): PlainAnswer {
  return { status, body: JSON.stringify({ message }) };
}
