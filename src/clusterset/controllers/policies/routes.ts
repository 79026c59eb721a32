// What this cluster's ServiceImportPolicies, the ClusterSet and exporters want for an import, as annotations on it, and the status of
// the policies.

import { isSameJson } from '../../../base/json.ts';
import type { WorkResult } from '../../../base/queue.ts';
import type { Informer } from '../../../kube/controller/informer.ts';
import { conditionOf, formatTime, type WantedCondition, withConditions } from '../../../kube/objects/conditions.ts';
import type { AgentContext } from '../../copies/context.ts';
import type { CountedRecord } from '../../copies/counted-records.ts';
import { importsByPolicy } from '../../copies/home-copies.ts';
import type { ServiceImport } from '../../kinds/service-import.ts';
import {
  type ChoiceSpec,
  type ServiceImportPolicy,
  serviceImportPolicyType,
} from '../../kinds/service-import-policy.ts';
import type { Merge } from '../../rules/merge/merged.ts';
import { formatServiceKey, parseServiceKey, type ServiceKey } from '../../rules/names.ts';
import { isOurImport } from '../../rules/plan-import.ts';
import {
  importedFromAnnotation,
  transparent as importedTransparently,
  sourceOfImport,
} from '../../rules/routing/import-as.ts';
import {
  type Exporter,
  type ImportSubject,
  policyOfImport,
  policyProblem,
  routingOf,
  selectsImport,
} from '../../rules/routing/import-policies.ts';
import {
  formatRouting,
  isNoRouting,
  type Routing,
  readRouting,
  routedByAnnotation,
  routingAnnotation,
} from '../../rules/routing/routing.ts';
import { overlaidBy } from '../../rules/routing/shifts.ts';
import { withOwnFirst } from '../../rules/routing/transparent.ts';
import { ImportNames } from './import-names.ts';
import type { Shifts } from './shifts.ts';
import { SteadyCounts } from './steady-counts.ts';
import { type TransparencyWish, TransparentNames } from './transparent-names.ts';
import { UdpPorts } from './udp-ports.ts';

interface RoutedService {
  /** Its name in the clusterset. */
  readonly service: ServiceKey;
  /** Its name here. */
  readonly local: ServiceKey;
  readonly merge: Merge;
  readonly records: readonly CountedRecord[];
  readonly present: ServiceImport | undefined;
}

/** What other parts do when names of imports change. */
export interface RoutesOptions {
  readonly again: (importKeys: readonly string[]) => void;
  readonly statusAgain: (policy: string) => void;
}

export class Routes {
  readonly #context: AgentContext;
  readonly #policies: Informer<ServiceImportPolicy>;
  readonly #shifts: Pick<Shifts, 'of'>;
  readonly #again: RoutesOptions['again'];
  readonly #statusAgain: RoutesOptions['statusAgain'];
  readonly #writtenMs = new Map<string, number>();
  /** Whether policies or the imports that go by them have changed since overlaps were looked for. */
  #areOverlapsOld = true;
  #overlaps: { readonly atMs: number; readonly byPolicy: ReadonlyMap<string, string> } | undefined;
  readonly names: ImportNames;
  readonly transparent: TransparentNames;
  readonly steadyCounts: SteadyCounts;
  readonly udpPorts: UdpPorts;

  constructor(
    context: AgentContext,
    policies: Informer<ServiceImportPolicy>,
    shifts: Pick<Shifts, 'of'>,
    { again, statusAgain }: RoutesOptions,
  ) {
    this.#context = context;
    this.#policies = policies;
    this.#shifts = shifts;
    this.#again = again;
    this.#statusAgain = statusAgain;
    this.#policies.on((_key, next, previous) => {
      if (next?.metadata.generation !== previous?.metadata.generation) this.#areOverlapsOld = true;
    });
    this.#context.copies.imports.on((_key, next, previous) => {
      if (routedBy(next) !== routedBy(previous)) this.#areOverlapsOld = true;
    });
    this.names = new ImportNames(this.#context, {
      policyOf: ({ service, merge }) => (this.#policies.hasSynced ? this.#policyOf(service, merge.labels) : 'unknown'),
      again: this.#again,
      onRefusal: this.#statusAgain,
    });
    this.transparent = new TransparentNames(this.#context, this.#statusAgain);
    this.steadyCounts = new SteadyCounts(this.#context);
    this.udpPorts = new UdpPorts(this.#context);
  }

  #policyOf(service: ServiceKey, labels: Readonly<Record<string, string>>): ServiceImportPolicy | undefined {
    return policyOfImport(this.#policies.values(), this.#subjectOf(service, labels));
  }

  #subjectOf({ namespace, name }: ServiceKey, labels: Readonly<Record<string, string>>): ImportSubject {
    const found = this.#context.copies.namespaces.get(namespace)?.metadata.labels;
    return { namespace: { name: namespace, ...(found ? { labels: found } : {}) }, name, labels };
  }

  annotationsOf({ service, local, merge, records, present }: RoutedService): Record<string, string> {
    const policy = this.#policyOf(service, merge.labels);
    const choice = policy?.spec ?? this.#context.policy().choice;
    const kept = keptAnnotations(present);
    const before = readRouting(kept[routingAnnotation] ?? '');
    // A wish that makes no sense, or cannot be read, changes nothing: what held before goes on.
    const isKept = !this.#policies.hasSynced || policyProblem(choice) !== undefined;
    const { shift: _shift, ...plain } = isKept ? before : this.#routed({ service, records, policy, before }, choice);
    const shift = this.#shifts.of(local);
    const shifted =
      shift !== 'unknown'
        ? overlaidBy(plain, shift)
        : { ...plain, ...(before.shift === undefined ? {} : { shift: before.shift }) };
    const isUdpWanted = isKept ? before.udp !== undefined : choice.udp === 'Any';
    const routing = this.#withUdp(shifted, { key: formatServiceKey(local), merge, isUdpWanted });
    const by = isKept ? kept[routedByAnnotation] : policy?.metadata.name;
    return {
      ...(isNoRouting(routing) && !routing.isTransparent && routing.udp === undefined
        ? {}
        : { [routingAnnotation]: formatRouting(routing) }),
      ...(by === undefined ? {} : { [routedByAnnotation]: by }),
      ...(isSameService(service, local) ? {} : { [importedFromAnnotation]: formatServiceKey(service) }),
    };
  }

  #routed(wish: Omit<TransparencyWish, 'was'> & { readonly before: Routing }, choice: ChoiceSpec): Routing {
    const steady = formatServiceKey(wish.service);
    const plain = this.steadyCounts.counted(
      steady,
      routingOf(
        choice,
        wish.records.map((record) => this.#exporterOf(record)),
      ),
      wish,
    );
    if (!this.transparent.isOn({ ...wish, was: wish.before.isTransparent === true })) return plain;
    const exporters = wish.records.map(({ cluster }) => cluster);
    return withOwnFirst(plain, { self: this.#context.membership.clusterId, exporters });
  }

  #withUdp(routing: Routing, wish: { key: string; merge: Merge; isUdpWanted: boolean }): Routing {
    const { udp: _udp, ...plain } = routing;
    if (wish.isUdpWanted) {
      const udp = this.udpPorts.waysOf({ ...wish, excluded: routing.excluded });
      return udp.length === 0 ? plain : { ...plain, udp };
    }
    this.udpPorts.forget(wish.key);
    return plain;
  }

  #exporterOf({ cluster: id, record }: CountedRecord): Exporter {
    const { share } = record.spec;
    const place = {
      cluster: this.#context.members.get(id)?.cluster,
      isOtherNetwork: this.#context.networks().clusters.has(id),
    };
    return { id, ...place, ...(share === undefined ? {} : { share }) };
  }

  /** Reconciles a policy's status. */
  async reconcileStatus(name: string): Promise<WorkResult | undefined> {
    const policy = this.#policies.get(name);
    if (policy === undefined) {
      this.#writtenMs.delete(name);
      return undefined;
    }
    const observedGeneration = policy.metadata.generation;
    const stamp = { now: formatTime(this.#context.world.clock.wallMs()), observedGeneration };
    const status = {
      ...policy.status,
      imports: this.#context.copies.imports.countByIndex(importsByPolicy, name),
      observedGeneration,
      conditions: [...withConditions(policy.status?.conditions, this.#conditionsOf(policy), stamp)],
    };
    // Overlaps are looked for once in a while: then again.
    const result = this.#areOverlapsOld ? { requeueAfterMs: overlapPauseMs } : undefined;
    if (isSameJson(status, policy.status)) return result;
    // While many imports change, their number is written once a second.
    const nowMs = this.#context.world.clock.monotonicMs();
    const waitMs = (this.#writtenMs.get(name) ?? Number.NEGATIVE_INFINITY) + statusPauseMs - nowMs;
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    this.#writtenMs.set(name, nowMs);
    await this.#context.home.updateStatus(serviceImportPolicyType, { ...policy, status });
    return result;
  }

  #conditionsOf(policy: ServiceImportPolicy): WantedCondition[] {
    const problem = policyProblem(policy.spec ?? {});
    const accepted: WantedCondition =
      problem === undefined
        ? { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'imports go by it' }
        : { type: 'Accepted', status: 'False', reason: 'Invalid', message: `${problem}; imports keep what they had` };
    const unknown = this.#unknownClusters(policy);
    const resolved: WantedCondition =
      unknown.length === 0
        ? { type: 'Resolved', status: 'True', reason: 'Resolved', message: 'every cluster it names is a member' }
        : { type: 'Resolved', status: 'False', reason: 'UnknownCluster', message: `no member: ${unknown.join(', ')}` };
    return [
      accepted,
      resolved,
      this.#overlapCondition(policy),
      ...this.#namedConditions(policy),
      ...this.#transparentConditions(policy),
    ];
  }

  /** Only of those that give names, or did. */
  #namedConditions({ metadata, spec, status }: ServiceImportPolicy): WantedCondition[] {
    const hadOne = conditionOf(status?.conditions, 'Named') !== undefined;
    if (spec?.importAs === undefined && !hadOne) return [];
    const refusals = this.names.refusals(metadata.name);
    return [
      refusals.length === 0
        ? { type: 'Named', status: 'True', reason: 'Named', message: 'all imports have the names that it gives' }
        : {
            type: 'Named',
            status: 'False',
            reason: 'NameTaken',
            message: shownOf(refusals),
          },
    ];
  }

  /** Only of those that want transparent names, or did. */
  #transparentConditions({ metadata, spec, status }: ServiceImportPolicy): WantedCondition[] {
    const hadOne = conditionOf(status?.conditions, 'Transparent') !== undefined;
    if (spec?.importAs !== importedTransparently && !hadOne) return [];
    const remarks = this.transparent.remarks(metadata.name);
    const refusals = remarks.filter(({ isRefusal }) => isRefusal);
    const all = 'the own names of what it selects lead to the clusterset';
    const shown = shownOf((refusals.length > 0 ? refusals : remarks).map(({ message }) => message));
    if (refusals.length > 0) return [{ type: 'Transparent', status: 'False', reason: 'Refused', message: shown }];
    const reason = remarks.length > 0 ? 'NeedsService' : 'Transparent';
    return [{ type: 'Transparent', status: 'True', reason, message: remarks.length > 0 ? shown : all }];
  }

  #unknownClusters(policy: ServiceImportPolicy): string[] {
    const spec = policy.spec ?? {};
    const named = [...(spec.clusters ?? []), ...(spec.exclude ?? [])].flatMap((match) => match?.clusters ?? []);
    const unknown = new Set(named.filter((id) => this.#context.members.get(id) === undefined));
    return [...unknown].sort().slice(0, namesShownMax);
  }

  /** Another policy, earlier by name, has the say over imports that this one selects too. */
  #overlapCondition({ metadata }: ServiceImportPolicy): WantedCondition {
    const message = this.#overlapMessages().get(metadata.name);
    return message === undefined
      ? { type: 'Overlap', status: 'False', reason: 'None', message: 'no other policy decides for its imports' }
      : { type: 'Overlap', status: 'True', reason: 'OtherPolicy', message };
  }

  /** One look at all imports gives the messages of all policies; it is taken at most once in a while. */
  #overlapMessages(): ReadonlyMap<string, string> {
    const nowMs = this.#context.world.clock.monotonicMs();
    if (this.#overlaps !== undefined && (!this.#areOverlapsOld || nowMs - this.#overlaps.atMs < overlapPauseMs))
      return this.#overlaps.byPolicy;
    this.#areOverlapsOld = false;
    const byPolicy = new Map<string, string>();
    const all = [...this.#policies.values()];
    for (const { metadata } of all.length > 1 ? this.#context.copies.imports.values() : []) {
      const by = routedBy({ metadata });
      if (by === undefined) continue;
      const service = parseServiceKey(sourceOfImport({ metadata }));
      const subject = this.#subjectOf(service, metadata.labels ?? {});
      for (const policy of all) {
        const { name } = policy.metadata;
        if (name === by || byPolicy.has(name) || !selectsImport(policy, subject)) continue;
        const what = `${service.namespace}/${service.name} and perhaps others go by the policy ${by}`;
        byPolicy.set(name, `${what}, which is first by name`);
      }
    }
    this.#overlaps = { atMs: nowMs, byPolicy };
    return byPolicy;
  }
}

function isSameService(one: ServiceKey, other: ServiceKey): boolean {
  return one.namespace === other.namespace && one.name === other.name;
}

function routedBy(object: Pick<ServiceImport, 'metadata'> | undefined): string | undefined {
  return object?.metadata.annotations?.[routedByAnnotation];
}

function shownOf(messages: readonly string[]): string {
  const more = messages.length > namesShownMax ? [`and ${messages.length - namesShownMax} more`] : [];
  return [...messages].sort().slice(0, namesShownMax).concat(more).join('; ');
}

const namesShownMax = 10;
const statusPauseMs = 1_000;
const overlapPauseMs = 500;

function keptAnnotations(present: ServiceImport | undefined): Record<string, string> {
  const kept = [routingAnnotation, routedByAnnotation].flatMap((name) => {
    const value = present && isOurImport(present) ? present.metadata.annotations?.[name] : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}
