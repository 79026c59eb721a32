// Makes every service that the clusterset exports an import of this cluster: the ServiceImport, its addresses and its
// slices, in each namespace that exists here. Hand edits are put back; slices of other writers are left alone.

import type { Allocator } from '../../addresses/allocator.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { WorkResult } from '../../base/queue.ts';
import { carriedTrace, traceAnnotations } from '../../base/telemetry/carried-trace.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, isAsWanted, replaceWith } from '../../kube/client/apply.ts';
import { confirmOwner } from '../../kube/client/confirm-owner.ts';
import { createPutBacks, type PutBacks } from '../../kube/controller/put-backs.ts';
import { isInvalid } from '../../kube/objects/api-error.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { isTerminating } from '../../kube/objects/namespace.ts';
import { apiVersionOf, type OwnerReference } from '../../kube/objects/object.ts';
import type { AgentContext } from '../copies/context.ts';
import type { CountedRecord } from '../copies/counted-records.ts';
import { slicesByImport } from '../copies/home-copies.ts';
import type { ClusterSetIpPolicy } from '../kinds/cluster-set.ts';
import { type ServiceImport, sealedFromAnnotation, serviceImportType } from '../kinds/service-import.ts';
import { derivedServiceAnnotation, derivedServiceName } from '../rules/derived-service.ts';
import type { Merge } from '../rules/merge/merged.ts';
import { formatServiceKey, parseServiceKey, type ServiceKey } from '../rules/names.ts';
import { hasOtherAddress } from '../rules/networks/other-address.ts';
import { usableFamilies } from '../rules/networks/own-families.ts';
import { isOurImport, planImport } from '../rules/plan-import.ts';
import { createImportedSlicePlanner, isOurSlice } from '../rules/plan-import-slices.ts';
import { importableSinceAnnotations, readImportableSinceMs } from '../rules/propagation.ts';
import { importedFromAnnotation } from '../rules/routing/import-as.ts';
import { writeConflict } from './addresses/address-conflicts.ts';
import { type HeldAddresses, holdAddresses, importOwner, nothingHeld } from './addresses/import-addresses.ts';
import { holdVirtualEndpoints, type VirtualEndpoints } from './addresses/virtual-endpoints.ts';
import { bringSlice } from './bring-slice.ts';
import { bringStandIn, carriedSlices, picksAll } from './carried.ts';
import { dropDerived, holdDerived } from './derived-service.ts';
import { writeImportStatus } from './import-status.ts';
import type { ExportedService } from './policies/import-names.ts';
import type { Routes } from './policies/routes.ts';
import { observePropagation, type Propagation } from './propagation.ts';
import { dropStandIn } from './stand-in-service.ts';
import { ImportTraces } from './traces.ts';

/** Writes for one service to one home. */
const writes = { atOnceMax: 8 };
/** While records of the older form are not all listed, the key is looked at again after this time. */
const unsyncedRetryMs = 1_000;

export class ImportController {
  readonly #context: AgentContext;
  readonly #allocator: Allocator;
  readonly #routes: Routes;
  readonly #planSlice = createImportedSlicePlanner();
  /** A copy from home that was found to be as planned, and that plan. */
  readonly #inSync = new WeakMap<EndpointSlice, EndpointSlice>();
  // Another implementation in this cluster may want imports to be something else.
  readonly #putBacks: PutBacks;
  readonly #propagation: Propagation;
  readonly #traces: ImportTraces;
  #lastDerivedProblem: string | undefined;

  constructor(context: AgentContext, allocator: Allocator, routes: Routes) {
    this.#context = context;
    this.#allocator = allocator;
    this.#routes = routes;
    this.#putBacks = createPutBacks(this.#context.world.clock);
    this.#propagation = observePropagation(this.#context);
    this.#traces = new ImportTraces(this.#context);
  }

  async reconcile(key: string): Promise<WorkResult | undefined> {
    // A merged view, where this home is the broker too: no service has a dot in its name.
    if (parseServiceKey(key).name.includes('.')) return undefined;
    const present = this.#context.copies.imports.get(key);
    // It may be made of a record of the older form that has not been listed yet.
    if (present !== undefined && !this.#context.legacy.hasSynced) return { requeueAfterMs: unsyncedRetryMs };
    const local = parseServiceKey(key);
    const exported = this.#routes.names.serviceAt(key);
    if (exported !== undefined && this.#hasNamespace(local)) return this.#bring(key, { ...exported, local, present });
    await this.#remove(key, present);
    if (present !== undefined && !isOurImport(present)) await writeConflict(this.#context, present);
    return undefined;
  }

  #hasNamespace({ namespace }: ServiceKey): boolean {
    const found = this.#context.copies.namespaces.get(namespace);
    return found !== undefined && !isTerminating(found);
  }

  async #remove(key: string, present: ServiceImport | undefined): Promise<void> {
    const { home } = this.#context;
    if (present !== undefined && isOurImport(present)) await deleteIfPresent(home, serviceImportType, present.metadata);
    for (const slice of this.#ourSlices(key)) await deleteIfPresent(home, endpointSliceType, slice.metadata);
    const local = parseServiceKey(key);
    await dropDerived(this.#context, local);
    await dropStandIn(this.#context, local);
    this.#routes.transparent.forget(key);
    this.#routes.steadyCounts.forget(key);
    this.#routes.udpPorts.forget(key);
    await this.#allocator.release(importOwner(local));
  }

  async #bring(key: string, exported: Facts): Promise<WorkResult | undefined> {
    const source = exported.merge.type === 'Headless' ? 'none' : this.#context.clusterSetIps();
    const { used, absent } = usableFamilies(exported.merge.ipFamilies, this.#context.families());
    const facts = absent.length === 0 ? exported : { ...exported, merge: { ...exported.merge, ipFamilies: used } };
    const { service, local, merge } = facts;
    const isReachable = used.length > 0 || absent.length === 0;
    const held: HeldAddresses = { ...(isReachable ? await this.#hold(source, facts) : nothingHeld), absent };
    const virtual =
      facts.merge.type === 'Headless' ? await holdVirtualEndpoints(this.#context, this.#allocator, facts) : undefined;
    const isDerived = source === 'derived' && held.isDerived !== false && held.ips.length > 0;
    const trace = this.#traces.begin(local, facts);
    const annotations = {
      ...this.#ownAnnotations(facts),
      ...traceAnnotations(carriedTrace(facts.present) ?? trace.traceparent),
      ...(isDerived ? { [derivedServiceAnnotation]: derivedServiceName(local) } : {}),
    };
    const wanted = planImport({ service: local, merge, ips: held.ips, annotations });
    const waitMs = this.#putBacks.waitMs(key, wanted);
    const written = await this.#bringImport(key, { present: facts.present, wanted, mayWrite: waitMs === 0 }).catch(
      async (error: unknown) => {
        // The addresses of an import that this home refuses stay unused.
        if (isInvalid(error) && facts.present === undefined) await this.#allocator.release(importOwner(local));
        throw error;
      },
    );
    trace.importWritten();
    await this.#allocator.release(importOwner(local), [...held.ips, ...(virtual?.addresses ?? [])]);
    if (source !== 'derived' || !isReachable) await dropDerived(this.#context, local);
    await bringStandIn(this.#context, { written, local }, merge);
    await this.#bringSlices(key, { ...facts, isDerived, virtual }, written);
    trace.slicesWritten();
    this.#propagation.imported(service, facts.records, facts.present);
    await writeImportStatus(this.#context, written, {
      merge: facts.merge,
      records: facts.records,
      held,
      source,
      virtual,
      udp: this.#routes.udpPorts.given(key),
    });
    if (held.problem !== undefined) this.#tellDerived(key, held.problem);
    if (waitMs !== 0 && !isAsWanted(written, wanted)) return { requeueAfterMs: waitMs };
    const againMs = [held.retryMs, this.#routes.steadyCounts.waitMs(formatServiceKey(service))].filter(
      (ms) => ms !== undefined,
    );
    return againMs.length === 0 ? undefined : { requeueAfterMs: Math.min(...againMs) };
  }

  /** Once for each text: without a right all imports have the same problem, and are tried again and again. */
  #tellDerived(service: string, problem: string): void {
    if (problem === this.#lastDerivedProblem) return;
    this.#lastDerivedProblem = problem;
    this.#context.log.warn('no derived Service', { service, problem });
  }

  /** The time stays as it was when the import was made: later exports do not make it new. */
  #ownAnnotations(facts: Facts): Record<string, string> {
    const { service, present, records } = facts;
    const times = records.map((record) => this.#propagation.sinceMs(service, record)).filter((ms) => ms !== undefined);
    const madeMs = readImportableSinceMs(present?.metadata.annotations);
    return {
      ...this.#sealedFrom(records),
      ...importableSinceAnnotations(madeMs ?? (times.length === 0 ? undefined : Math.max(...times))),
      ...this.#routes.annotationsOf(facts),
    };
  }

  #sealedFrom(records: readonly CountedRecord[]): Record<string, string> {
    const { sealed } = this.#context.members;
    const from = records.filter(({ record }) => sealed?.originOf(record) !== undefined);
    return from.length === 0 ? {} : { [sealedFromAnnotation]: from.map(({ cluster }) => cluster).join(',') };
  }

  #hold(source: ClusterSetIpPolicy, facts: Facts): Promise<HeldAddresses> {
    const named = { ...facts, service: facts.local };
    if (source === 'derived') return holdDerived(this.#context, named);
    if (source === 'none') return Promise.resolve(nothingHeld);
    return holdAddresses(this.#context, this.#allocator, named);
  }

  async #bringImport(key: string, { present, wanted, mayWrite }: ImportWrite): Promise<ServiceImport> {
    if (present !== undefined && (!mayWrite || isAsWanted(present, wanted))) return present;
    const { object: written } = await apply({
      client: this.#context.home,
      type: serviceImportType,
      present,
      change: replaceWith(wanted),
      beforeUpdate: (there) => this.#sayTakenOver(there, wanted),
    });
    this.#putBacks.wrote(key, wanted);
    return written;
  }

  /** Records an Event on an import that was made by hand or by another implementation: we manage it from now on. */
  async #sayTakenOver(present: ServiceImport, wanted: ServiceImport): Promise<void> {
    if (isOurImport(present)) return;
    // Our copy was older than this import: a policy gives no name that somebody else has.
    if (importedFromAnnotation in (wanted.metadata.annotations ?? {}))
      throw new Error(`import ${present.metadata.namespace}/${present.metadata.name}: Portolan did not write it`);
    const message =
      'this import had another owner; the clusterset exports the service, so the agent now manages it, and deletes it after the last export';
    await this.#context.events.record({ about: present, type: 'Warning', reason: 'ImportTakenOver', message });
  }

  async #bringSlices(key: string, facts: Facts, owner: ServiceImport): Promise<void> {
    const { home } = this.#context;
    const present = new Map(this.#ourSlices(key).map((slice) => [slice.metadata.name, slice]));
    const imported = this.#wantedSlices(facts, owner);
    const { local, isDerived = false } = facts;
    const carried = carriedSlices(
      this.#context,
      { local, written: owner, isDerived, present: [...present.values()] },
      imported,
    );
    const slices = [...imported, ...carried];
    const names = new Set(slices.map(({ metadata }) => metadata.name));
    const areFirst = present.size === 0 && slices.length > 0;
    if (areFirst && owner === facts.present) await confirmOwner(home, serviceImportType, owner.metadata);
    // A data plane has the new ones before it loses others.
    for (const some of [carried, imported])
      await inParallel(some, writes, (slice) => this.#writeSlice(present.get(slice.metadata.name), slice));
    const leftovers = present.values().filter(({ metadata }) => !names.has(metadata.name));
    await inParallel(leftovers, writes, (slice) => deleteIfPresent(home, endpointSliceType, slice.metadata));
  }

  async #writeSlice(present: EndpointSlice | undefined, wanted: EndpointSlice): Promise<void> {
    if (present !== undefined && this.#inSync.get(present) === wanted) return;
    const wasInSync = await bringSlice({ client: this.#context.home, type: endpointSliceType, present, wanted });
    if (present !== undefined && wasInSync) this.#inSync.set(present, wanted);
  }

  #wantedSlices({ local, records, merge, isDerived, virtual }: Facts, written: ServiceImport): EndpointSlice[] {
    const owner = ownerReference(written);
    const derivedService = isDerived && picksAll(this.#context, written) ? derivedServiceName(local) : undefined;
    const families = this.#context.families();
    return records
      .filter(({ shard }) => servesSomething(merge, shard))
      .flatMap(({ cluster, record, status, published }) => {
        const portNames = merge.portNames.get(cluster) ?? new Map<string, string>();
        const rules = this.#context.addressRulesOf(cluster);
        const { isTrusted, isDraining } = status;
        const isOtherNetwork = this.#context.networks().clusters.has(cluster);
        const translations =
          cluster === this.#context.membership.clusterId ? this.#context.ownAddresses().inverse : undefined;
        return published()
          .filter(({ addressType }) => addressType !== 'FQDN' && (families?.includes(addressType) ?? true))
          .map((slice) =>
            this.#planSlice({
              service: local,
              cluster,
              published: slice,
              portNames,
              isTrusted,
              isDraining,
              rules,
              translations,
              isOtherNetwork,
              isAskedByName:
                isOtherNetwork && hasOtherAddress(written.spec.ips, record.spec.clusterSetIPs, slice.addressType),
              virtual: virtual?.byCluster.get(cluster),
              owner,
              derivedService,
            }),
          );
      });
  }

  #ourSlices(key: string): EndpointSlice[] {
    return this.#context.copies.slices.byIndex(slicesByImport, key).filter(isOurSlice);
  }
}

interface ImportWrite {
  readonly present: ServiceImport | undefined;
  readonly wanted: ServiceImport;
  readonly mayWrite: boolean;
}

interface Facts extends ExportedService {
  /** Its name here. */
  readonly local: ServiceKey;
  readonly present: ServiceImport | undefined;
  /** Whether the slices stand behind a derived Service too. */
  readonly isDerived?: boolean;
  /** Of a headless service. */
  readonly virtual?: VirtualEndpoints | undefined;
}

// A cluster none of whose ports is part of the import serves nothing. One that declares none has no port to be wrong.
function servesSomething(merge: Merge, shard: CountedRecord['shard']): boolean {
  const names = merge.portNames.get(shard.cluster);
  return names !== undefined && (names.size > 0 || shard.ports.length === 0);
}

function ownerReference(owner: ServiceImport): OwnerReference {
  return {
    apiVersion: apiVersionOf(serviceImportType),
    kind: serviceImportType.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? '',
  };
}
