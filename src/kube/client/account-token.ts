// A token of a service account, asked for by TokenRequest.

import type { AnyObject, KubernetesObject } from '../objects/object.ts';
import { serviceAccountType } from '../objects/rbac.ts';
import type { Client } from './client.ts';

export interface AccountToken {
  readonly token: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

export interface AccountTokenRequest {
  readonly namespace: string;
  readonly name: string;
  readonly lifetimeMs: number;
  /** Servers that accept it; the API server if absent. */
  readonly audiences?: readonly string[];
  /** A Secret of the same namespace that the token lives and dies with. */
  readonly boundTo?: KubernetesObject;
}

export async function requestToken(client: Client, request: AccountTokenRequest): Promise<AccountToken> {
  const { namespace, name, lifetimeMs, audiences, boundTo } = request;
  const body: AnyObject = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name, namespace },
    spec: {
      expirationSeconds: Math.floor(lifetimeMs / 1000),
      ...(audiences === undefined ? {} : { audiences }),
      ...(boundTo === undefined
        ? {}
        : {
            boundObjectRef: {
              apiVersion: 'v1',
              kind: 'Secret',
              name: boundTo.metadata.name,
              uid: boundTo.metadata.uid,
            },
          }),
    },
  };
  const answer = await client.createSubresource(serviceAccountType, { namespace, name, subresource: 'token' }, body);
  const { token, expirationTimestamp } = answer['status'] as { token: string; expirationTimestamp: string };
  return { token, expiresAt: expirationTimestamp };
}
