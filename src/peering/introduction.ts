// A one-use introduction between two meshes: whoever holds its secret may tell us its address and trust bundle once, and
// becomes a Peer. The token carries ours to it. Pure but for the home it is kept in.

import { createHash } from 'node:crypto';
import type { Client } from '../client/client.ts';
import { type Peer, peerType } from '../model/peer.ts';
import { type Introduction, introductionName, parseIntroductionReply } from '../model/peer-introduction.ts';
import { type Secret, secretType } from '../model/secret.ts';
import type { PlainAnswer } from './transport-server.ts';

export interface IntroduceOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly nowMs: number;
  readonly body: Buffer;
}

/** Answers the other mesh; the Peer exists when it answers 200. */
export async function introduce(options: IntroduceOptions): Promise<PlainAnswer> {
  const { client, namespace, nowMs } = options;
  const reply = parseIntroductionReply(options.body.toString('utf8'));
  if (reply === undefined) return refuse(400, 'not an introduction: secret, address, domain and bundle are needed');
  const found = await findSecret(client, namespace, reply.secret);
  if (found === undefined) return refuse(401, 'this introduction is unknown, or was used already');
  // Taken first, on condition that nobody else took it: of two that come at once one is refused.
  await client.delete(secretType, { namespace, name: found.metadata.name }, preconditions(found));
  const terms = termsIn(found);
  if (terms === undefined || terms.expiresMs < nowMs) return refuse(401, 'this introduction has expired');
  await client.create<Peer>(peerType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Peer',
    metadata: { name: terms.peer, namespace },
    spec: {
      ...(reply.address === '' ? {} : { address: reply.address }),
      trust: { domain: reply.domain, bundle: reply.bundle },
      allowedDomains: [...terms.allowedDomains],
    },
  });
  return { status: 200, body: JSON.stringify({ peer: terms.peer }) };
}

async function findSecret(client: Client, namespace: string, secret: string): Promise<Secret | undefined> {
  try {
    return await client.get<Secret>(secretType, { namespace, name: introductionName(hashOf(secret)) });
  } catch {
    return undefined;
  }
}

export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function preconditions(secret: Secret) {
  const { uid } = secret.metadata;
  return uid === undefined ? {} : { preconditions: { uid } };
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
