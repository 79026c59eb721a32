// The data that two meshes exchange before they connect, and the token that carries it.
// Pure.

import { valueIn } from '../../base/json.ts';
import type { MeshDefaults } from '../kinds/peer-export.ts';

/** How a mesh describes itself: a ConfigMap in its home, and half of an introduction. */
export interface MeshCard {
  /** `host:port`; empty if nothing can be taken from it. */
  readonly address: string;
  readonly domain: string;
  /** PEM. */
  readonly bundle: string;
}

/** Under which conditions the mesh that comes with the token becomes a peer. */
export interface Introduction {
  readonly peer: string;
  readonly allowedDomains: readonly string[];
  readonly expiresMs: number;
}

export interface IntroductionReply extends MeshCard {
  readonly secret: string;
}

export interface IntroductionToken extends MeshCard {
  readonly secret: string;
}

export const meshCardName = 'portolan-peering';
/** In the card: the namespace of the Secrets that peering reads. */
export const cardSecretsKey = 'secretsNamespace';
export const introductionPath = '/portolan/v1/introduce';
export const catalogPath = '/portolan/v1/catalog';

/** Further facts for the mesh's own people: how exports name services, and where peers' connections arrive. */
export function meshCardData(card: MeshCard, mesh: MeshDefaults): Record<string, string> {
  const { address, domain, bundle } = card;
  return { address, domain, bundle, serviceDomain: mesh.domain, ingress: JSON.stringify(mesh.ingress) };
}

/** Undefined for a card that does not say. */
export function meshDefaultsIn(data: Readonly<Record<string, string>>): MeshDefaults | undefined {
  const { domain: trustDomain, serviceDomain: domain, ingress } = data;
  const list = valueIn(ingress ?? '', []);
  if (trustDomain === undefined || domain === undefined || !Array.isArray(list)) return undefined;
  return { trustDomain, domain, ingress: list as MeshDefaults['ingress'] };
}

const prefix = 'portolan-peer-';

export function introductionName(secretHash: string): string {
  return `portolan-introduction-${secretHash.slice(0, 40)}`;
}

export function formatToken(token: IntroductionToken): string {
  return prefix + Buffer.from(JSON.stringify(token)).toString('base64url');
}

/** Undefined for a text that is no token. */
export function parseToken(text: string): IntroductionToken | undefined {
  if (!text.startsWith(prefix)) return undefined;
  return parseIntroductionReply(Buffer.from(text.slice(prefix.length), 'base64url').toString('utf8'));
}

export function parseIntroductionReply(text: string): IntroductionReply | undefined {
  try {
    const { secret, address, domain, bundle } = JSON.parse(text) as Record<string, unknown>;
    const all = [secret, address, domain, bundle];
    if (all.some((value) => typeof value !== 'string')) return undefined;
    return { secret, address, domain, bundle } as IntroductionReply;
  } catch {
    return undefined;
  }
}
