// The rules of a MeshExternalService, one for each match that counts. Only for resources that are valid and visible. Pure.

import { type Ip, type IpRange, parseIp, parseRange } from '../../base/net/ip.ts';
import {
  createdMs,
  type ExternalMatch,
  type MeshExternalService,
  type Origin,
  originOf,
  ownName,
  type Protocol,
} from '../kinds/mesh-external-service.ts';
import { isWildcard } from './validation/hostname.ts';
import { isPortHijack, rangedPorts } from './validation/matches.ts';

export interface Rule {
  readonly resource: RuleOwner;
  /** Index of its match in the resource. */
  readonly index: number;
  readonly port: number;
  readonly protocol: Protocol;
  readonly match: RuleMatch;
}

/** The resource a rule comes from, as far as it decides between equals. */
export interface RuleOwner {
  readonly origin: Origin;
  /** The name that people gave it; unique within its origin. */
  readonly name: string;
  readonly createdMs: number;
}

export type RuleMatch =
  | { readonly kind: 'vip'; readonly addresses: readonly Ip[] }
  | { readonly kind: 'name'; readonly name: string }
  /** `.example.com`: with the dot, without the star. */
  | { readonly kind: 'wildcard'; readonly suffix: string }
  | { readonly kind: 'range'; readonly range: IpRange };

export function ownerOf(object: MeshExternalService): RuleOwner {
  return { origin: originOf(object), name: ownName(object), createdMs: createdMs(object) };
}

export function rulesOf(object: MeshExternalService): Rule[] {
  const resource = ownerOf(object);
  const context = contextOf(object);
  return object.spec.match.flatMap((match, index) =>
    matchesOf(context, match).map((one) => ({
      ...{ resource, index, port: match.port },
      ...{ protocol: match.protocol ?? 'tcp', match: one },
    })),
  );
}

const everything = ['0.0.0.0/0', '::/0'];

/** The shared part of its matches, gathered once: a resource may have thousands of them. */
interface MatchContext {
  readonly rangePorts: ReadonlySet<unknown>;
  /** Virtual IPs by hostname; those of hostnames that generators gave also under undefined. */
  readonly virtualIps: ReadonlyMap<string | undefined, readonly Ip[]>;
}

function contextOf(object: MeshExternalService): MatchContext {
  const { spec, status } = object;
  const written = new Set(spec.match.map(({ value }) => value?.toLowerCase()));
  const virtualIps = new Map<string | undefined, Ip[]>();
  for (const { hostname, ip } of status?.vips ?? []) {
    const parsed = parseIp(ip);
    if (parsed === undefined) continue;
    const name = hostname.toLowerCase();
    for (const key of written.has(name) ? [name] : [name, undefined]) {
      const known = virtualIps.get(key);
      if (known === undefined) virtualIps.set(key, [parsed]);
      else known.push(parsed);
    }
  }
  const rangePorts = rangedPorts(spec.match.map((match) => ({ ...match })));
  return { rangePorts, virtualIps };
}

function matchesOf({ rangePorts, virtualIps }: MatchContext, match: ExternalMatch): RuleMatch[] {
  const value = match.value?.toLowerCase();
  if (match.type === 'InternalVIP') return [{ kind: 'vip', addresses: virtualIps.get(value) ?? [] }];
  if (value === undefined) return [];
  if (match.type !== 'Domain') return rangesOf([value]);
  if ((match.protocol ?? 'tcp') === 'tcp') return isPortHijack({ ...match }, rangePorts) ? rangesOf(everything) : [];
  return [isWildcard(value) ? { kind: 'wildcard', suffix: value.slice(1) } : { kind: 'name', name: value }];
}

function rangesOf(texts: readonly string[]): RuleMatch[] {
  return texts.flatMap((text) => {
    const range = parseRange(text);
    return range === undefined ? [] : [{ kind: 'range' as const, range }];
  });
}

/** The older resource first, then by name, origin and place in the resource. */
export function byPrecedence(one: Rule, other: Rule): number {
  return compareOwners(one.resource, other.resource) || one.index - other.index;
}

function compareOwners(one: RuleOwner, other: RuleOwner): number {
  return one.createdMs - other.createdMs || compareText(one.name, other.name) || compareText(one.origin, other.origin);
}

export function compareText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** `httpbin`, or `broker/httpbin`: names no two resources that count in one cluster share. */
export function ownerId({ origin, name }: RuleOwner): string {
  return origin === 'home' ? name : `${origin}/${name}`;
}
