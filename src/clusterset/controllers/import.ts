// Makes every service that the clusterset exports an import of this cluster: the ServiceImport, its addresses and its
// slices, in each namespace that exists here. Hand edits are put back; slices of other writers are left alone.

import type { Allocator } from '../../addresses/allocator.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { WorkResult } from '../../base/queue.ts';
import { carriedTrace, traceAnnotations } from '../../base/telemetry/carried-trace.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, isAsWanted, replaceWith } from '../../kube/client/apply.ts';
import { confirmOwner } from '../../kube/client/confirm-owner.ts';
import { createPutBacks } from '../../kube/controller/put-backs.ts';
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
import { observePropagation } from './propagation.ts';
import { dropStandIn } from './stand-in-service.ts';
import { ImportTraces } from './traces.ts';

export interface ImportController {
  reconcile(key: string): Promise<WorkResult | undefined>;
}

/** Writes for one service to one home. */
const writes = { atOnceMax: 8 };
/** While records of the older form are not all listed, the key is looked at again after this time. */
const unsyncedRetryMs = 1_000;

export function createImportController(context: AgentContext, allocator: Allocator, routes: Routes): ImportController {
  const { copies, home, membership } = context;
  const planSlice = createImportedSlicePlanner();
  /** A copy from home that was found to be as planned, and that plan. */
  const inSync = new WeakMap<EndpointSlice, EndpointSlice>();
  // Another implementation in this cluster may want imports to be something else.
  const putBacks = createPutBacks(context.world.clock);
  const propagation = observePropagation(context);
  const traces = new ImportTraces(context);
  let lastDerivedProblem: string | undefined;

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    // A merged view, where this home is the broker too: no service has a dot in its name.
    if (parseServiceKey(key).name.includes('.')) return undefined;
    const present = copies.imports.get(key);
    // It may be made of a record of the older form that has not been listed yet.
    if (present !== undefined && !context.legacy.hasSynced) return { requeueAfterMs: unsyncedRetryMs };
    const local = parseServiceKey(key);
    const exported = routes.names.serviceAt(key);
    if (exported !== undefined && hasNamespace(local)) return bring(key, { ...exported, local, present });
    await remove(key, present);
    if (present !== undefined && !isOurImport(present)) await writeConflict(context, present);
    return undefined;
  }

  function hasNamespace({ namespace }: ServiceKey): boolean {
    const found = copies.namespaces.get(namespace);
    return found !== undefined && !isTerminating(found);
  }

  async function remove(key: string, present: ServiceImport | undefined): Promise<void> {
    if (present !== undefined && isOurImport(present)) await deleteIfPresent(home, serviceImportType, present.metadata);
    for (const slice of ourSlices(key)) await deleteIfPresent(home, endpointSliceType, slice.metadata);
    const local = parseServiceKey(key);
    await dropDerived(context, local);
    await dropStandIn(context, local);
    routes.transparent.forget(key);
    routes.steadyCounts.forget(key);
    routes.udpPorts.forget(key);
    await allocator.release(importOwner(local));
  }

  async function bring(key: string, exported: Facts): Promise<WorkResult | undefined> {
    const source = exported.merge.type === 'Headless' ? 'none' : context.clusterSetIps();
    const { used, absent } = usableFamilies(exported.merge.ipFamilies, context.families());
    const facts = absent.length === 0 ? exported : { ...exported, merge: { ...exported.merge, ipFamilies: used } };
    const { service, local, merge } = facts;
    const isReachable = used.length > 0 || absent.length === 0;
    const held: HeldAddresses = { ...(isReachable ? await hold(source, facts) : nothingHeld), absent };
    const virtual = facts.merge.type === 'Headless' ? await holdVirtualEndpoints(context, allocator, facts) : undefined;
    const isDerived = source === 'derived' && held.isDerived !== false && held.ips.length > 0;
    const trace = traces.begin(local, facts);
    const annotations = {
      ...ownAnnotations(facts),
      ...traceAnnotations(carriedTrace(facts.present) ?? trace.traceparent),
      ...(isDerived ? { [derivedServiceAnnotation]: derivedServiceName(local) } : {}),
    };
    const wanted = planImport({ service: local, merge, ips: held.ips, annotations });
    const waitMs = putBacks.waitMs(key, wanted);
    const written = await bringImport(key, { present: facts.present, wanted, mayWrite: waitMs === 0 }).catch(
      async (error: unknown) => {
        // The addresses of an import that this home refuses stay unused.
        if (isInvalid(error) && facts.present === undefined) await allocator.release(importOwner(local));
        throw error;
      },
    );
    trace.importWritten();
    await allocator.release(importOwner(local), [...held.ips, ...(virtual?.addresses ?? [])]);
    if (source !== 'derived' || !isReachable) await dropDerived(context, local);
    await bringStandIn(context, { written, local }, merge);
    await bringSlices(key, { ...facts, isDerived, virtual }, written);
    trace.slicesWritten();
    propagation.imported(service, facts.records, facts.present);
    const udp = routes.udpPorts.given(key);
    await writeImportStatus(context, written, {
      merge: facts.merge,
      records: facts.records,
      held,
      source,
      virtual,
      udp,
    });
    if (held.problem !== undefined) tellDerived(key, held.problem);
    if (waitMs !== 0 && !isAsWanted(written, wanted)) return { requeueAfterMs: waitMs };
    const againMs = [held.retryMs, routes.steadyCounts.waitMs(formatServiceKey(service))].filter(
      (ms) => ms !== undefined,
    );
    return againMs.length === 0 ? undefined : { requeueAfterMs: Math.min(...againMs) };
  }

  /** Once for each text: without a right all imports have the same problem, and are tried again and again. */
  function tellDerived(service: string, problem: string): void {
    if (problem === lastDerivedProblem) return;
    lastDerivedProblem = problem;
    context.log.warn('no derived Service', { service, problem });
  }

  /** The time stays as it was when the import was made: later exports do not make it new. */
  function ownAnnotations(facts: Facts): Record<string, string> {
    const { service, present, records } = facts;
    const times = records.map((record) => propagation.sinceMs(service, record)).filter((ms) => ms !== undefined);
    const madeMs = readImportableSinceMs(present?.metadata.annotations);
    return {
      ...sealedFrom(records),
      ...importableSinceAnnotations(madeMs ?? (times.length === 0 ? undefined : Math.max(...times))),
      ...routes.annotationsOf(facts),
    };
  }

  function sealedFrom(records: readonly CountedRecord[]): Record<string, string> {
    const { sealed } = context.members;
    const from = records.filter(({ record }) => sealed?.originOf(record) !== undefined);
    return from.length === 0 ? {} : { [sealedFromAnnotation]: from.map(({ cluster }) => cluster).join(',') };
  }

  function hold(source: ClusterSetIpPolicy, facts: Facts): Promise<HeldAddresses> {
    const named = { ...facts, service: facts.local };
    if (source === 'derived') return holdDerived(context, named);
    if (source === 'none') return Promise.resolve(nothingHeld);
    return holdAddresses(context, allocator, named);
  }

  async function bringImport(key: string, { present, wanted, mayWrite }: ImportWrite): Promise<ServiceImport> {
    if (present !== undefined && (!mayWrite || isAsWanted(present, wanted))) return present;
    const { object: written } = await apply({
      client: home,
      type: serviceImportType,
      present,
      change: replaceWith(wanted),
      beforeUpdate: (there) => sayTakenOver(there, wanted),
    });
    putBacks.wrote(key, wanted);
    return written;
  }

  /** Records an Event on an import that was made by hand or by another implementation: we manage it from now on. */
  async function sayTakenOver(present: ServiceImport, wanted: ServiceImport): Promise<void> {
    if (isOurImport(present)) return;
    // Our copy was older than this import: a policy gives no name that somebody else has.
    if (importedFromAnnotation in (wanted.metadata.annotations ?? {}))
      throw new Error(`import ${present.metadata.namespace}/${present.metadata.name}: Portolan did not write it`);
    const message =
      'this import had another owner; the clusterset exports the service, so the agent now manages it, and deletes it after the last export';
    await context.events.record({ about: present, type: 'Warning', reason: 'ImportTakenOver', message });
  }

  async function bringSlices(key: string, facts: Facts, owner: ServiceImport): Promise<void> {
    const present = new Map(ourSlices(key).map((slice) => [slice.metadata.name, slice]));
    const imported = wantedSlices(facts, owner);
    const { local, isDerived = false } = facts;
    const carried = carriedSlices(
      context,
      { local, written: owner, isDerived, present: [...present.values()] },
      imported,
    );
    const slices = [...imported, ...carried];
    const names = new Set(slices.map(({ metadata }) => metadata.name));
    const areFirst = present.size === 0 && slices.length > 0;
    if (areFirst && owner === facts.present) await confirmOwner(home, serviceImportType, owner.metadata);
    // A data plane has the new ones before it loses others.
    for (const some of [carried, imported])
      await inParallel(some, writes, (slice) => writeSlice(present.get(slice.metadata.name), slice));
    const leftovers = present.values().filter(({ metadata }) => !names.has(metadata.name));
    await inParallel(leftovers, writes, (slice) => deleteIfPresent(home, endpointSliceType, slice.metadata));
  }

  async function writeSlice(present: EndpointSlice | undefined, wanted: EndpointSlice): Promise<void> {
    if (present !== undefined && inSync.get(present) === wanted) return;
    const wasInSync = await bringSlice({ client: home, type: endpointSliceType, present, wanted });
    if (present !== undefined && wasInSync) inSync.set(present, wanted);
  }

  function wantedSlices({ local, records, merge, isDerived, virtual }: Facts, written: ServiceImport): EndpointSlice[] {
    const owner = ownerReference(written);
    const derivedService = isDerived && picksAll(context, written) ? derivedServiceName(local) : undefined;
    const families = context.families();
    return records
      .filter(({ shard }) => servesSomething(merge, shard))
      .flatMap(({ cluster, record, status, published }) => {
        const portNames = merge.portNames.get(cluster) ?? new Map<string, string>();
        const rules = context.addressRulesOf(cluster);
        const { isTrusted, isDraining } = status;
        const isOtherNetwork = context.networks().clusters.has(cluster);
        const translations = cluster === membership.clusterId ? context.ownAddresses().inverse : undefined;
        return published()
          .filter(({ addressType }) => addressType !== 'FQDN' && (families?.includes(addressType) ?? true))
          .map((slice) =>
            planSlice({
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

  function ourSlices(key: string): EndpointSlice[] {
    return copies.slices.byIndex(slicesByImport, key).filter(isOurSlice);
  }

  return { reconcile };
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
