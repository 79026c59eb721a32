// `portolan peer token`, `portolan peer add` and `portolan peer remove`: two meshes get to know each other, and part.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDnsLabel } from '../../base/dns/labels.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type Peer, peerType, splitPem } from '../../peering/kinds/peer.ts';
import {
  cardSecretsKey,
  formatToken,
  introductionName,
  introductionPath,
  type MeshCard,
  meshCardName,
  parseToken,
} from '../../peering/rules/peer-introduction.ts';
import { peerOfSameMesh } from '../../peering/rules/same-mesh.ts';
import { notFoundError, refusedError, usageError } from '../exit-codes.ts';
import { callPeer, type PeerAnswer } from './call.ts';

export interface PeerHome {
  readonly client: Client;
  readonly namespace: string;
}

/** Where peering reads Secrets: as its card says, or beside the Peers. */
export async function secretsNamespaceOf({ client, namespace }: PeerHome): Promise<string> {
  const card = await getOrUndefined<ConfigMap>(client, configMapType, { namespace, name: meshCardName });
  return card?.data?.[cardSecretsKey] ?? namespace;
}

export async function ownCard({ client, namespace }: PeerHome): Promise<MeshCard> {
  const card = await getOrUndefined<ConfigMap>(client, configMapType, { namespace, name: meshCardName });
  if (card === undefined)
    throw notFoundError(
      `ConfigMap ${namespace}/${meshCardName} is not there: start portolan peering on this home first`,
    );
  const { data = {} } = card;
  return { address: data['address'] ?? '', domain: data['domain'] ?? '', bundle: data['bundle'] ?? '' };
}

export interface TokenRequest {
  readonly peer: string;
  readonly allowedDomains: readonly string[];
  readonly expiresMs: number;
  readonly secret: string;
}

/** Valid once, until it expires, for its holder. */
export async function makeToken(home: PeerHome, request: TokenRequest): Promise<string> {
  const { peer, allowedDomains, expiresMs, secret } = request;
  mustBeName(peer);
  if (await isKnown(home, peer))
    throw refusedError(`peer token ${peer}: there is a Peer ${peer} already; remove it first, or choose another name`);
  const card = await ownCard(home);
  if (card.address === '')
    throw new Error('this mesh has no address for peers: start portolan peering with --advertise');
  const hash = createHash('sha256').update(secret).digest('hex');
  await home.client.create<Secret>(secretType, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: introductionName(hash),
      namespace: await secretsNamespaceOf(home),
      labels: { 'portolan.dev/introduction': peer },
    },
    stringData: { terms: JSON.stringify({ peer, allowedDomains, expiresMs }) },
  });
  return formatToken({ ...card, secret });
}

/** A part of names in DNS, as `db.<peer>.svc.peers.local`. */
function mustBeName(peer: string): void {
  const [problem] = isDnsLabel(peer);
  if (problem !== undefined) throw usageError(`${peer} cannot be the name of a peer: ${problem}`);
}

export async function isKnown({ client, namespace }: PeerHome, name: string): Promise<boolean> {
  return (await getOrUndefined<Peer>(client, peerType, { namespace, name })) !== undefined;
}

export interface AddRequest {
  readonly name: string;
  readonly allowedDomains: readonly string[];
}

export async function addByToken(home: PeerHome, text: string, request: AddRequest): Promise<string[]> {
  const token = parseToken(text);
  if (token === undefined) throw usageError('--token: invalid; want the output of portolan peer token');
  const card = await ownCard(home);
  const { address, domain, bundle, secret } = token;
  // A mesh refuses an unknown peer, and the dialler then stops: so we first admit the other mesh, then it admits us,
  // and only then do we dial it.
  await createPeer(home, { ...request, domain, bundle });
  const answer = await introduceOurselves(token, { ...card, secret }).catch(async (error: unknown) => {
    await home.client.delete(peerType, { namespace: home.namespace, name: request.name });
    throw error;
  });
  const body = { spec: { address } };
  await home.client.patch(peerType, { namespace: home.namespace, name: request.name }, { kind: 'merge', body });
  return [`peer ${request.name} added; it knows us as ${answer.body.peer}`];
}

async function introduceOurselves({ address, domain, bundle }: MeshCard, body: object): Promise<PeerAnswer> {
  const answer = await callPeer({ address, domain, bundle, path: introductionPath, body });
  if (answer.status === 200) return answer;
  throw refusedError(`${address} refused the introduction: ${answer.body.message}`);
}

export interface ManualRequest extends AddRequest {
  readonly address?: string;
  readonly domain: string;
  readonly bundleFile: string;
  readonly identities: readonly string[];
}

export async function addByHand(home: PeerHome, request: ManualRequest): Promise<string[]> {
  const bundle = readFileSync(request.bundleFile, 'utf8');
  if (splitPem(bundle).length === 0) throw usageError(`--bundle ${request.bundleFile}: no certificate in PEM in it`);
  await createPeer(home, { ...request, bundle });
  return [`peer ${request.name} added; the other side must add us too`];
}

interface WantedPeer extends AddRequest {
  readonly address?: string;
  readonly domain: string;
  readonly bundle: string;
  readonly identities?: readonly string[];
}

async function createPeer({ client, namespace }: PeerHome, wanted: WantedPeer): Promise<void> {
  const { name, address, domain, bundle, identities = [], allowedDomains } = wanted;
  mustBeName(name);
  const { items } = await client.list<Peer>(peerType, { namespace });
  const twin = peerOfSameMesh(items, { domain, identities: [...identities], roots: splitPem(bundle) });
  if (twin !== undefined && twin.metadata.name !== name)
    throw refusedError(
      `peer add ${name}: Peer ${twin.metadata.name} is the same mesh (trust domain ${domain}, same roots)`,
    );
  await client.create<Peer>(peerType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Peer',
    metadata: { name, namespace },
    spec: {
      ...(address === undefined || address === '' ? {} : { address }),
      trust: { domain, bundle, ...(identities.length === 0 ? {} : { identities: [...identities] }) },
      allowedDomains: [...allowedDomains],
    },
  });
}

export async function removePeer({ client, namespace }: PeerHome, name: string): Promise<string[]> {
  await client.delete(peerType, { namespace, name });
  return [`peer ${name} and its services removed`];
}
