// Properties of a clusterset that has calmed down, whatever happened before. Each check returns what it found wrong,
// in words; an empty list is a clusterset in order.

import { type AddressClaim, addressClaimType } from '../src/addresses/address-claim.ts';
import { isSameJson } from '../src/base/json.ts';
import { endpointShardType } from '../src/clusterset/kinds/endpoint-shard.ts';
import { type FederatedService, federatedServiceType } from '../src/clusterset/kinds/federated-service.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { type ServiceShard, serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { placementLabel } from '../src/clusterset/rules/agent-marks.ts';
import { mayExport } from '../src/clusterset/rules/may-export.ts';
import { formatServiceKey, parseRecordName, parseServiceKey, recordName } from '../src/clusterset/rules/names.ts';
import { isPlacedIn } from '../src/clusterset/rules/placement.ts';
import { planSpec } from '../src/clusterset/rules/plan-import.ts';
import { importedSliceName, isOurSlice, planImportedSlice } from '../src/clusterset/rules/plan-import-slices.ts';
import { publishedServiceKey } from '../src/clusterset/rules/shard-record.ts';
import { conditionOf } from '../src/kube/objects/conditions.ts';
import { type EndpointSlice, endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { memberNamespace, type SimClusterSet, setName } from './clusterset.ts';
import { hasExposedPort, reachViolations } from './reach-properties.ts';
import type { MemberTruth, Truth } from './truth.ts';

export async function findViolations(set: SimClusterSet, truth: Truth): Promise<string[]> {
  const violations: string[] = [];
  for (const member of truth.members) {
    if (!member.isAlive) continue;
    violations.push(...(await importViolations(set, truth, member)));
    violations.push(...(await sliceViolations(set, truth, member)));
    violations.push(...(await addressViolations(set, member)));
    violations.push(...(await publishedViolations(set, truth, member)));
    violations.push(...conditionViolations(truth, member));
    violations.push(...(await reachViolations(set, truth, member)));
  }
  violations.push(...(await viewViolations(set, truth)));
  violations.push(...(await placementViolations(set, truth)));
  return violations;
}

/** Every import is what the records say, in every cluster that has the namespace, and nowhere else. */
async function importViolations(set: SimClusterSet, truth: Truth, member: MemberTruth): Promise<string[]> {
  const { items } = await set.home(member.id).admin.list<ServiceImport>(serviceImportType);
  const present = new Map(items.map((item) => [`${item.metadata.namespace}/${item.metadata.name}`, item]));
  const violations: string[] = [];
  for (const key of truth.keys) {
    const merge = truth.merge(key, member.id);
    const found = present.get(key);
    present.delete(key);
    if (merge === undefined || !member.namespaces.has(parseServiceKey(key).namespace)) {
      if (found !== undefined) violations.push(`${member.id}: import ${key} is left, though nobody exports it`);
      continue;
    }
    if (found === undefined) {
      violations.push(`${member.id}: import ${key} is missing`);
      continue;
    }
    const { ips = [], ...spec } = found.spec;
    if (!isSameJson(spec, planSpec(merge, []))) {
      violations.push(
        `${member.id}: import ${key} says ${JSON.stringify(spec)}, the records ${JSON.stringify(planSpec(merge, []))}`,
      );
    }
    const clusters = (found.status?.clusters ?? []).map(({ cluster }) => cluster);
    if (!isSameJson(clusters, merge.clusters))
      violations.push(`${member.id}: import ${key} names ${clusters}, not ${merge.clusters}`);
    const wantsIp = merge.type === 'ClusterSetIP' && member.ipSource !== 'none';
    const reason = conditionOf(found.status?.conditions, 'Ready')?.reason;
    const isStarved = reason === 'Exhausted' || (reason === 'DerivedServiceFailed' && !hasExposedPort(merge));
    if (wantsIp !== ips.length > 0 && !(wantsIp && isStarved))
      violations.push(`${member.id}: import ${key} has addresses ${ips}`);
  }
  for (const key of present.keys()) violations.push(`${member.id}: import ${key} is left over`);
  return violations;
}

/** Exactly the slices that the counted clusters publish, under merged names, and no others. */
async function sliceViolations(set: SimClusterSet, truth: Truth, member: MemberTruth): Promise<string[]> {
  const { items } = await set.home(member.id).admin.list<EndpointSlice>(endpointSliceType);
  const present = new Map(
    items.filter(isOurSlice).map((slice) => [`${slice.metadata.namespace}/${slice.metadata.name}`, slice]),
  );
  const violations: string[] = [];
  for (const key of truth.keys) {
    const service = parseServiceKey(key);
    const merge = truth.merge(key, member.id);
    if (merge === undefined || !member.namespaces.has(service.namespace)) continue;
    for (const { cluster, record, status } of truth.counted(key, member.id)) {
      const source = truth.members.find(({ id }) => id === cluster)!;
      const portNames = merge.portNames.get(source.id);
      if (portNames === undefined || (portNames.size === 0 && (record.spec.ports ?? []).length > 0)) continue;
      for (const published of source.published.get(key) ?? []) {
        const place = `${service.namespace}/${importedSliceName(service, source.id, published.metadata.name)}`;
        const found = present.get(place);
        present.delete(place);
        const wanted = planImportedSlice({
          service,
          cluster: source.id,
          published,
          portNames,
          isTrusted: status.isTrusted,
          isDraining: status.isDraining,
          rules: { virtualRanges: truth.policy.virtualRanges, allowedRanges: [] },
          owner: { apiVersion: '', kind: '', name: '', uid: '' },
        });
        if (found === undefined) violations.push(`${member.id}: a slice of ${key} from ${source.id} is missing`);
        else if (!isSameJson([found.endpoints ?? [], found.ports ?? []], [wanted.endpoints, wanted.ports])) {
          violations.push(
            `${member.id}: a slice of ${key} from ${source.id} holds ${JSON.stringify([found.endpoints, found.ports])}`,
          );
        }
      }
    }
  }
  for (const place of present.keys()) violations.push(`${member.id}: slice ${place} is left over`);
  return violations;
}

/** No address with two holders, and every address in use is claimed by its user. */
export async function addressViolations(
  set: SimClusterSet,
  member: { readonly id: string; readonly ipSource?: string },
): Promise<string[]> {
  const { admin } = set.home(member.id);
  const imports = (await admin.list<ServiceImport>(serviceImportType)).items;
  const claims = (await admin.list<AddressClaim>(addressClaimType)).items;
  const holders = new Map(claims.map(({ spec }) => [spec.address, `${spec.owner.namespace}/${spec.owner.name}`]));
  const released = new Set(claims.filter(({ spec }) => spec.releasedAt !== undefined).map(({ spec }) => spec.address));
  const violations: string[] = [];
  const used = new Map<string, string>();
  for (const { metadata, spec } of imports) {
    const key = `${metadata.namespace}/${metadata.name}`;
    for (const ip of spec.ips ?? []) {
      if (used.has(ip)) violations.push(`${member.id}: address ${ip} is held by ${used.get(ip)} and by ${key}`);
      used.set(ip, key);
      // Those of a derived Service are the home's.
      if (member.ipSource === 'derived') continue;
      if (holders.get(ip) !== key)
        violations.push(`${member.id}: address ${ip} of ${key} is claimed by ${holders.get(ip)}`);
      if (released.has(ip)) violations.push(`${member.id}: address ${ip} of ${key} is released`);
    }
  }
  for (const { spec } of claims) {
    if (spec.releasedAt === undefined && !used.has(spec.address)) {
      violations.push(`${member.id}: address ${spec.address} is claimed by nobody who uses it`);
    }
  }
  return violations;
}

/** At the broker lies what a living member exports, and no more. */
async function publishedViolations(set: SimClusterSet, truth: Truth, member: MemberTruth): Promise<string[]> {
  const namespace = memberNamespace(member.id);
  const shards = (await set.broker.admin.list<ServiceShard>(serviceShardType, { namespace })).items;
  const slices = (await set.broker.admin.list<EndpointSlice>(endpointShardType, { namespace })).items;
  const violations: string[] = [];
  const exported = truth.keys.filter((key) => truth.shard(member.id, key) !== undefined);
  const wanted = new Map(exported.map((key) => [recordName(parseServiceKey(key)), truth.shard(member.id, key)]));
  for (const shard of shards) {
    const { clusterSetIPs: _ips, endpointShards, ...spec } = shard.spec;
    const count = slices.filter((slice) => publishedServiceKey(slice) === keyOfShard(shard)).length;
    if (endpointShards !== count)
      violations.push(`${member.id}: shard ${shard.metadata.name} has ${count} slices and says ${endpointShards}`);
    if (!isSameJson(spec, wanted.get(shard.metadata.name)?.spec))
      violations.push(`${member.id}: shard ${shard.metadata.name} is not what it exports`);
    wanted.delete(shard.metadata.name);
  }
  for (const name of wanted.keys()) violations.push(`${member.id}: shard ${name} is missing`);
  const names = new Set([...member.published.values()].flat().map(({ metadata }) => metadata.name));
  for (const { metadata } of slices)
    if (!names.delete(metadata.name)) violations.push(`${member.id}: published slice ${metadata.name} is left over`);
  for (const name of names) violations.push(`${member.id}: published slice ${name} is missing`);
  return violations;
}

function keyOfShard({ metadata }: ServiceShard): string {
  return formatServiceKey(parseRecordName(metadata.name)!);
}

/** Conditions of every export equal the predicted ones, messages included. */
function conditionViolations(truth: Truth, member: MemberTruth): string[] {
  const violations: string[] = [];
  for (const [key, { status }] of member.exports) {
    for (const { type, status: wanted, reason, message } of truth.conditions(member.id, key) ?? []) {
      const found = conditionOf(status?.conditions, type);
      const says = `${found?.status}/${found?.reason} ${found?.message}`;
      const should = `${wanted}/${reason} ${message}`;
      if (says !== should) violations.push(`${member.id}: export ${key} says ${type}=${says}, should say ${should}`);
    }
  }
  return violations;
}

async function viewViolations(set: SimClusterSet, truth: Truth): Promise<string[]> {
  const { items } = await set.broker.admin.list<ServiceImport>(serviceImportType, { namespace: setName });
  const violations: string[] = [];
  const present = new Map(items.map((item) => [item.metadata.name, item]));
  for (const key of truth.keys) {
    const merge = truth.merge(key);
    const name = recordName(parseServiceKey(key));
    const hasLivingExporter = truth
      .counted(key)
      .some(({ cluster }) => truth.members.some((one) => one.id === cluster && one.isAlive));
    const found = present.get(name);
    present.delete(name);
    if (merge === undefined) {
      if (found !== undefined) violations.push(`broker: view ${name} is left over`);
    } else if (hasLivingExporter && !isSameJson(found?.spec, planSpec(merge, []))) {
      violations.push(`broker: view ${name} is ${JSON.stringify(found?.spec)}`);
    }
  }
  for (const name of present.keys()) violations.push(`broker: view ${name} is left over`);
  return violations;
}

/**
 * A placed service is in the clusters that ask for it and nowhere else, and each living cluster's status line is
 * right.
 */
async function placementViolations(set: SimClusterSet, truth: Truth): Promise<string[]> {
  const { items } = await set.broker.admin.list<FederatedService>(federatedServiceType, { namespace: setName });
  const violations: string[] = [];
  const isReadyAt = (id: string, key: string) =>
    (truth.members.find((one) => one.id === id)?.published.get(key) ?? [])
      .flatMap(({ endpoints }) => endpoints ?? [])
      .some(({ conditions }) => conditions?.ready !== false);
  // A service that moves stays where it was until it is ready in a cluster that it moves to.
  const isWaitedFor = (key: string) => {
    const moved = items.find(({ metadata }) => formatServiceKey(parseRecordName(metadata.name)!) === key);
    const clusters = moved?.spec.clusters ?? [];
    return clusters.length > 0 && !clusters.some((id) => isReadyAt(id, key));
  };
  for (const member of truth.members.filter(({ isAlive }) => isAlive)) {
    const asked = items.filter((one) => isPlacedIn(one, member.id));
    const wanted = new Map(asked.map((one) => [formatServiceKey(parseRecordName(one.metadata.name)!), one]));
    for (const [key, { metadata }] of [...member.services, ...member.exports]) {
      const isLeftOver = metadata.labels?.[placementLabel] !== undefined && !wanted.has(key);
      if (isLeftOver && !isWaitedFor(key)) violations.push(`${member.id}: ${key} was placed and is left over`);
    }
    for (const [key, { status, spec }] of wanted) {
      const found = member.services.get(key);
      const isOurs = found?.metadata.labels?.[placementLabel] !== undefined;
      if (found === undefined) violations.push(`${member.id}: ${key} is not placed`);
      if (isOurs && found?.spec?.sessionAffinity !== spec.template.spec.sessionAffinity)
        violations.push(`${member.id}: ${key} is not placed as its template says`);
      const said = status?.clusters?.find(({ cluster }) => cluster === member.id)?.state;
      const isAllowed = mayExport(member, parseServiceKey(key));
      if (said !== (isOurs && isAllowed ? 'Placed' : 'Refused'))
        violations.push(`broker: ${key} in ${member.id} is said to be ${said}`);
    }
  }
  return violations;
}
