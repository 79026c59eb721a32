// Which hostnames external services have: those written in InternalVIP matches and those that HostnameGenerators make, and
// who has a name that several claim. Pure; the order of the input never matters.

import { selectsLabels } from '../../kube/objects/label-selector.ts';
import { allowManyAnnotation, type HostnameGenerator, selectedMax } from '../kinds/hostname-generator.ts';
import { type ExternalAddress, type MeshExternalService, ownName } from '../kinds/mesh-external-service.ts';
import { compareText, ownerId, ownerOf } from './rule.ts';
import { parseTemplate, resolveTemplate } from './template.ts';

/** Somebody of another kind that has names. */
export interface NameOwner {
  readonly kind: string;
  /** `namespace/name` */
  readonly key: string;
  readonly createdMs: number;
  readonly hostnames: readonly string[];
}

export interface HostnameInput {
  /** Valid and visible. */
  readonly resources: readonly MeshExternalService[];
  /** Valid copies of the broker's. */
  readonly generators: readonly HostnameGenerator[];
  readonly others: readonly NameOwner[];
  /** Zones in which an external service has no name. */
  readonly zones: readonly string[];
}

export interface HostnamePlan {
  /** By id of the resource; ordered by hostname. */
  readonly addresses: ReadonlyMap<string, readonly ExternalAddress[]>;
  /** How many resources each generator selects, by its name. */
  readonly selected: ReadonlyMap<string, number>;
}

interface Claim {
  /** Those of one owner share a name. */
  readonly owner: string;
  /** For people. */
  readonly claimant: string;
  readonly name: string;
  readonly createdMs: number;
}

interface Wish {
  readonly id: string;
  readonly address: ExternalAddress;
}

export function planHostnames(input: HostnameInput): HostnamePlan {
  const { wishes, selected } = wishesOf(input);
  const claims = claimsOf(input, wishes);
  const addresses = new Map<string, ExternalAddress[]>(input.resources.map((object) => [ownerId(ownerOf(object)), []]));
  for (const { id, address } of wishes) addresses.get(id)?.push(settle(address, id, claims, input.zones));
  for (const list of addresses.values())
    list.sort((a, b) => compareText(a.hostname, b.hostname) || compareText(a.origin.name, b.origin.name));
  return { addresses, selected };
}

function settle(
  address: ExternalAddress,
  id: string,
  claims: ReadonlyMap<string, readonly Claim[]>,
  zones: readonly string[],
): ExternalAddress {
  if (address.status === 'NotAvailable') return address;
  const { hostname } = address;
  const refuse = (reason: string): ExternalAddress => ({ ...address, status: 'NotAvailable', reason });
  const zone = zones.find((one) => hostname === one || hostname.endsWith(`.${one}`));
  if (zone !== undefined) return refuse(`not available because it lies in the zone ${zone}`);
  const winner = claims.get(hostname)?.[0];
  if (winner === undefined || winner.owner === ownerOfId(id)) return address;
  return refuse(`not available because of the clash with ${winner.claimant}, which is older`);
}

/** Resources of one origin have one owner: the operator of the mesh, or of the cluster. */
function ownerOfId(id: string): string {
  return id.includes('/') ? 'broker' : 'home';
}

function claimsOf({ resources, others }: HostnameInput, wishes: readonly Wish[]): Map<string, Claim[]> {
  const created = new Map(resources.map((object) => [ownerId(ownerOf(object)), ownerOf(object).createdMs]));
  const claims = new Map<string, Claim[]>();
  const add = (hostname: string, claim: Claim) => {
    const present = claims.get(hostname);
    if (present === undefined) claims.set(hostname, [claim]);
    else present.push(claim);
  };
  for (const { id, address } of wishes) {
    if (address.status === 'NotAvailable') continue;
    const claim = { owner: ownerOfId(id), claimant: `MeshExternalService ${id}`, name: id.split('/').at(-1)! };
    add(address.hostname, { ...claim, createdMs: created.get(id) ?? 0 });
  }
  for (const { kind, key, createdMs, hostnames } of others)
    for (const name of hostnames)
      if (claims.has(name.toLowerCase()))
        add(name.toLowerCase(), {
          owner: `${kind} ${key}`,
          claimant: `${kind} ${key}`,
          name: key.split('/').at(-1)!,
          createdMs,
        });
  for (const list of claims.values())
    list.sort(
      (a, b) => a.createdMs - b.createdMs || compareText(a.name, b.name) || compareText(a.claimant, b.claimant),
    );
  return claims;
}

function wishesOf({ resources, generators }: HostnameInput): { wishes: Wish[]; selected: Map<string, number> } {
  const selected = new Map<string, number>();
  const wishes = resources.flatMap(writtenNames);
  for (const generator of generators.toSorted((a, b) => compareText(ownName(a), ownName(b)))) {
    const targets = resources.filter((object) => isSelected(generator, object));
    selected.set(ownName(generator), targets.length);
    if (targets.length <= selectedMax || generator.metadata.annotations?.[allowManyAnnotation] === 'true')
      for (const object of targets) wishes.push(generatedName(generator, object));
  }
  return { wishes: withoutTwins(wishes), selected };
}

function writtenNames(object: MeshExternalService): Wish[] {
  const id = ownerId(ownerOf(object));
  const names = object.spec.match.flatMap(({ type, value }) =>
    type === 'InternalVIP' && value !== undefined ? [value.toLowerCase()] : [],
  );
  const origin = { kind: 'MeshExternalService', name: ownerOf(object).name };
  return names.map((hostname) => ({ id, address: { hostname, status: 'Available', origin } }));
}

function isSelected({ spec }: HostnameGenerator, object: MeshExternalService): boolean {
  const labels = object.metadata.labels ?? {};
  const selector = { matchLabels: { ...spec.targetRef?.tags, ...spec.selector?.matchLabels } };
  return selectsLabels(selector, labels);
}

function generatedName(generator: HostnameGenerator, object: MeshExternalService): Wish {
  const owner = ownerOf(object);
  const origin = { kind: 'HostnameGenerator', name: ownName(generator) };
  const parsed = parseTemplate(generator.spec.template);
  const refuse = (hostname: string, reason: string): Wish => ({
    id: ownerId(owner),
    address: { hostname, status: 'NotAvailable', origin, reason },
  });
  if (parsed.kind === 'refused') return refuse(generator.spec.template, parsed.reason);
  const resolved = resolveTemplate(parsed.parts, { name: owner.name, labels: object.metadata.labels ?? {} });
  if (resolved.kind === 'unresolved') return refuse(resolved.attempt, resolved.reason);
  const hasPlace = object.spec.match.some(({ type, value }) => type === 'InternalVIP' && value === undefined);
  if (!hasPlace) return refuse(resolved.hostname, 'the resource has no InternalVIP match without a value');
  return { id: ownerId(owner), address: { hostname: resolved.hostname, status: 'Available', origin } };
}

/** The first to give a resource a name is its origin. */
function withoutTwins(wishes: readonly Wish[]): Wish[] {
  const seen = new Set<string>();
  return wishes.filter(({ id, address }) => {
    const key = `${id} ${address.hostname}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}
