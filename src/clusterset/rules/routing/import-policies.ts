// Which ServiceImportPolicy an import goes by, what is wrong with one, and what it means for the clusters that export the service.
// Pure.

import { compareText } from '../../../base/compare-text.ts';
import { type LabelSelector, selectsLabels } from '../../../kube/objects/label-selector.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import type {
  ChoiceSpec,
  ClusterMatch,
  ServiceImportPolicy,
  ServiceImportPolicySpec,
} from '../../kinds/service-import-policy.ts';
import { readProperties } from './cluster-properties.ts';
import { importAsProblem, transparent } from './import-as.ts';
import type { Routing } from './routing.ts';

export interface ImportSubject {
  readonly namespace: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export function selectsImport(policy: ServiceImportPolicy, { namespace, name, labels }: ImportSubject): boolean {
  const { namespaces, namespaceSelector, services, importSelector } = policy.spec ?? {};
  const isAnyNamespace = !namespaces && !namespaceSelector;
  const isNamespace =
    isAnyNamespace ||
    (namespaces ?? []).includes(namespace.name) ||
    (namespaceSelector ? selectsLabels(namespaceSelector, namespace.labels ?? {}) : false);
  return (
    isNamespace && (!services || services.includes(name)) && (!importSelector || selectsLabels(importSelector, labels))
  );
}

/** The first by name of those that select the import: the others have no say. One that makes no sense counts too. */
export function policyOfImport(
  policies: Iterable<ServiceImportPolicy>,
  subject: ImportSubject,
): ServiceImportPolicy | undefined {
  let first: ServiceImportPolicy | undefined;
  for (const policy of policies) {
    if (policy.metadata.deletionTimestamp !== undefined || !selectsImport(policy, subject)) continue;
    if (first === undefined || compareText(policy.metadata.name, first.metadata.name) < 0) first = policy;
  }
  return first;
}

/** Why a policy cannot be followed; undefined if it can. Imports then keep what they had. */
export function choiceProblem({ clusters, exclude, spillover, reach, udp }: ChoiceSpec): string | undefined {
  if (reach && reach !== 'Any' && reach !== 'Direct')
    return `reach: ${JSON.stringify(reach)} is neither Any nor Direct`;
  if (udp && udp !== 'Any' && udp !== 'Direct') return `udp: ${JSON.stringify(udp)} is neither Any nor Direct`;
  const groups = clusters ?? [];
  const empty = [...groups, ...(exclude ?? [])].findIndex((match) => !match || !namesSomething(match));
  if (empty >= 0)
    return `${empty < groups.length ? `clusters[${empty}]` : `exclude[${empty - groups.length}]`} names no cluster: give clusters, regions, zones, clusterSelector or propertySelector`;
  const weights = groups.flatMap(({ weight }) => weight ?? []);
  const sum = weights.reduce((all, weight) => all + weight, 0);
  if (sum > 100) return `the weights add up to ${sum}: they are percents, and at most 100 can be given away`;
  if (weights.length > 0 && sum === 0) return 'all weights are 0: give one of them a part, or leave the weights out';
  if (spillover?.minReady !== undefined && spillover.minReady !== null && readMinReady(spillover) === undefined)
    return `spillover.minReady: ${JSON.stringify(spillover.minReady).slice(0, 40)} is neither a number from 1 to ${minReadyMax} nor a percentage such as 50%`;
  return undefined;
}

export function policyProblem(spec: ServiceImportPolicySpec): string | undefined {
  return choiceProblem(spec) ?? importAsProblem(spec.importAs) ?? transparencyProblem(spec);
}

/** Applications may rely on their cluster's own names: each service is named, none is selected. */
function transparencyProblem({ importAs, services }: ServiceImportPolicySpec): string | undefined {
  const isNamed = Boolean(services) && services!.length > 0;
  return importAs !== transparent || isNamed
    ? undefined
    : 'importAs: Transparent needs services: the names of the services that it is meant for';
}

/** Lists that are there and empty name nobody: a template that was filled with nothing is no wish for everybody. */
function namesSomething({ clusters, regions, zones, clusterSelector, propertySelector }: ClusterMatch): boolean {
  const lists = [clusters, regions, zones].filter((list) => list);
  const hasSelector = Boolean(clusterSelector) || Boolean(propertySelector);
  return (lists.length > 0 || hasSelector) && lists.every((list) => list!.length > 0);
}

function readMinReady({ minReady }: NonNullable<ChoiceSpec['spillover']>): Routing['minReady'] {
  if (typeof minReady === 'number')
    return Number.isInteger(minReady) && minReady > 0 && minReady <= minReadyMax ? { count: minReady } : undefined;
  const [, digits] = /^(\d{1,3})%$/.exec(minReady ?? '') ?? [];
  const percent = Number(digits ?? 0);
  return percent >= 1 && percent <= 100 ? { percent } : undefined;
}

/** More endpoints than any group has. */
const minReadyMax = 10_000;

export interface Exporter {
  readonly id: string;
  /** Undefined while it is not known. */
  readonly cluster: Cluster | undefined;
  /** Percent of its share that it wants itself; all if absent. */
  readonly share?: number;
  /** It lies in another network: connections to it go through gateways. */
  readonly isOtherNetwork?: boolean;
}

/** Only clusters that export the service are named: one that comes or goes elsewhere changes nothing. */
export function routingOf(choice: ChoiceSpec, exporters: readonly Exporter[]): Routing {
  const idsOf = (match: ClusterMatch) =>
    exporters
      .filter((exporter) => matches(match, exporter))
      .map(({ id }) => id)
      .sort(compareText);
  const elsewhere = exporters.filter(({ isOtherNetwork }) => choice.reach === 'Direct' && isOtherNetwork);
  const excluded = new Set([...(choice.exclude ?? []).flatMap(idsOf), ...elsewhere.map(({ id }) => id)]);
  const minReady = choice.spillover ? readMinReady(choice.spillover) : undefined;
  return {
    // One without a cluster stays if it has a weight: its part is not to be shared out again.
    groups: (choice.clusters ?? [])
      .map((group) => ({
        clusters: idsOf(group).filter((id) => !excluded.has(id)),
        ...(typeof group.weight === 'number' ? { weight: group.weight } : {}),
      }))
      .filter(({ clusters, weight }) => clusters.length > 0 || weight !== undefined),
    excluded: [...excluded].sort(compareText),
    ...(minReady === undefined ? {} : { minReady }),
    lowered: Object.fromEntries(
      exporters
        .filter(({ share }) => share !== undefined && share < 100)
        .map(({ id, share }) => [id, share!] as const)
        .sort(([one], [other]) => compareText(one, other)),
    ),
  };
}

function matches(match: ClusterMatch, { id, cluster }: Exporter): boolean {
  const { clusters, regions, zones, clusterSelector, propertySelector } = match;
  if (clusters && !clusters.includes(id)) return false;
  if (regions && !regions.includes(cluster?.spec.region ?? '')) return false;
  if (zones && !zones.includes(cluster?.spec.zone ?? '')) return false;
  const fits = (selector: LabelSelector | undefined, values: Record<string, string> | undefined) =>
    !selector || (cluster !== undefined && selectsLabels(selector, values ?? {}));
  return fits(clusterSelector, cluster?.metadata.labels) && fits(propertySelector, readProperties(cluster));
}
