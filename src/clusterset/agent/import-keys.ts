// Which imports are looked at again when something else at home has changed, and which policies when an import has.

import { type AddressClaim, addressClaimName, addressOfClaimName } from '../../addresses/address-claim.ts';
import type { Informer } from '../../kube/controller/informer.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { Service } from '../../kube/objects/service.ts';
import type { Routes } from '../controllers/policies/routes.ts';
import { shiftedService } from '../controllers/policies/shifts.ts';
import type { AgentContext } from '../copies/context.ts';
import { addressesOf, importsByAddress, importsByReason, importsBySource } from '../copies/home-copies.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import type { ServiceImportPolicy } from '../kinds/service-import-policy.ts';
import type { TrafficShift } from '../kinds/traffic-shift.ts';
import { sourceOfImport } from '../rules/routing/import-as.ts';
import { routedByAnnotation } from '../rules/routing/routing.ts';

/** With more imports that name one free address, one more or less changes the condition of none. */
const rivalsMax = 4;

export class ImportKeys {
  readonly #context: Pick<AgentContext, 'copies' | 'memberServices'>;
  readonly #policies: Informer<ServiceImportPolicy>;
  readonly #routes: Pick<Routes, 'names' | 'transparent'>;

  constructor(
    context: Pick<AgentContext, 'copies' | 'memberServices'>,
    policies: Informer<ServiceImportPolicy>,
    routes: Pick<Routes, 'names' | 'transparent'>,
  ) {
    this.#context = context;
    this.#policies = policies;
    this.#routes = routes;
  }

  /** A policy may select any import; its status changes none. */
  ofPolicy(next?: ServiceImportPolicy, previous?: ServiceImportPolicy): Iterable<string> {
    const isStatus =
      next !== undefined &&
      next.metadata.generation !== undefined &&
      next.metadata.generation === previous?.metadata.generation &&
      next.metadata.deletionTimestamp === previous?.metadata.deletionTimestamp;
    const { copies, memberServices } = this.#context;
    return isStatus ? [] : new Set([...memberServices.all(), ...copies.imports.keys()]);
  }

  /** All policies if another one decides: each names the one that does. */
  policiesOf(next?: ServiceImport, previous?: ServiceImport): Iterable<string> {
    const [by, before] = [next, previous].map((object) => object?.metadata.annotations?.[routedByAnnotation]);
    if (by !== before) return this.#policies.keys();
    return by === undefined ? [] : [by];
  }

  /** Whether the cluster has a Service of its own decides what its name may lead to. */
  ofTransparentName(service: Service): string | undefined {
    const key = keyOf(service);
    return this.#routes.transparent.isWished(key) ? key : undefined;
  }

  /** While an import moves, the service has two: the one that comes lets the other go. */
  ofSameService(next?: ServiceImport, previous?: ServiceImport): Iterable<string> {
    const { imports } = this.#context.copies;
    const sources = new Set([next, previous].flatMap((object) => (object ? [sourceOfImport(object)] : [])));
    return [...sources].flatMap((source) => [source, ...imports.byIndex(importsBySource, source).map(keyOf)]);
  }

  /** Its status may hold another percent. */
  ofShift(next?: TrafficShift, previous?: TrafficShift): Iterable<string> {
    return new Set([next, previous].flatMap((shift) => (shift && shiftedService(shift)) ?? []));
  }

  inNamespace(name: string): Iterable<string> {
    return new Set([...this.#context.memberServices.inNamespace(name), ...this.#routes.names.wantingIn(name)]);
  }

  /** Imports whose conflicts over an address may be others now: the one that holds it, or the few that name it. */
  rivalsOf(key: string, next: ServiceImport | undefined, previous: ServiceImport | undefined): string[] {
    const { claims, imports } = this.#context.copies;
    const [after, before] = [next, previous].map((object) => (object ? addressesOf(object) : []));
    const changed = [...after!, ...before!].filter(
      (address) => !after!.includes(address) || !before!.includes(address),
    );
    return changed.flatMap((address) => {
      const owner = claims.get(addressClaimName(address))?.spec.owner;
      if (owner !== undefined) return importOwning(owner);
      if (imports.countByIndex(importsByAddress, address) > rivalsMax) return [];
      return imports
        .byIndex(importsByAddress, address)
        .map(keyOf)
        .filter((other) => other !== key);
    });
  }

  /** Owner of the claim, and imports that name its address; when it has become free, all waiting owners too. */
  ofClaim(name: string, next: AddressClaim | undefined, previous: AddressClaim | undefined): string[] {
    const { imports } = this.#context.copies;
    const own = importOwning((next ?? previous)!.spec.owner);
    const users = imports.byIndex(importsByAddress, addressOfClaimName(name) ?? '').map(keyOf);
    if (next !== undefined) return [...own, ...users];
    return [...own, ...users, ...imports.byIndex(importsByReason, 'Exhausted').map(keyOf)];
  }
}

function importOwning(owner: AddressClaim['spec']['owner']): string[] {
  return owner.kind === serviceImportType.kind ? [`${owner.namespace}/${owner.name}`] : [];
}
