// Reads the way of one service: at the homes that were named, at the broker, and at the resolvers and proxies of the asking
// cluster through its home.

import type { World } from '../../base/world.ts';
import { consultBroker } from '../../clusterset/explain/consult.ts';
import {
  listAll,
  type MemberState,
  maySayNames,
  readSetState,
  type SetState,
} from '../../clusterset/explain/set-state.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import { whyNotTrusted } from '../../clusterset/rules/leases/lease-memory.ts';
import { recordName, type ServiceKey } from '../../clusterset/rules/names.ts';
import { isOffered } from '../../clusterset/rules/networks/remote-endpoint.ts';
import type { Explanation } from '../../dns/explain/explanation.ts';
import type { Read } from '../../doctor/facts.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { PartAdmin } from '../../kube/client/part-admin.ts';
import { conditionOf, formatTime } from '../../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  serviceNameLabel,
  sourceClusterLabel,
} from '../../kube/objects/endpoint-slice.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type PartName, partLabel, partState } from '../../kube/objects/part-lease.ts';
import type { Report } from '../../proxy/connectivity/report.ts';
import { describeError } from '../exit-codes.ts';
import { readPairs } from '../pairs.ts';
import type { ExporterFacts, ExporterHome, ImporterFacts, Mark, TraceFacts } from './facts.ts';

export interface TracedHome {
  readonly client: Client;
  readonly membership: MembershipRecord;
}

export interface TraceRequest {
  readonly world: World;
  readonly homes: readonly TracedHome[];
  readonly service: ServiceKey;
  readonly from: string;
  /** Why homes that were named could not be read. */
  readonly unread: readonly string[];
}

/** One of those that were named and did not answer may be the home of that cluster. */
function whyNoHome(cluster: string, unread: readonly string[]): string {
  if (unread.length === 0) return `no kubeconfig of ${cluster} was given`;
  return `no home of ${cluster} answers; of those that were given could not be read: ${unread.join('; ')}`;
}

const partMsMax = 8_000;

export async function readTrace({ world, homes, service, from, unread }: TraceRequest): Promise<TraceFacts> {
  const key = `${service.namespace}/${service.name}`;
  const importing = homes.find(({ membership }) => membership.clusterId === from);
  // The verdicts on leases are those of the asking cluster's agent, if its home can be read.
  const { client: home, membership } = importing ?? homes[0]!;
  const { state, merged } = await consultBroker({
    world,
    membership,
    run: async (broker) => {
      const found = await readSetState({ home, broker, membership, clock: world.clock, keys: [key] });
      return { state: found, merged: await mergedView(broker, { membership, service, policy: found.policy }) };
    },
  });
  const exporting = state.members.filter(
    ({ id, shards }) => shards.has(key) || homes.some((one) => one.membership.clusterId === id),
  );
  const exporters = await Promise.all(
    exporting.map((member) => readExporter(member, { key, service, home: homeOf(homes, member.id), unread })),
  );
  return {
    service: key,
    from,
    exporters: exporters.filter(
      ({ record, home: own }) => record !== undefined || ('value' in own && own.value.export !== undefined),
    ),
    merged,
    importer:
      importing === undefined
        ? { why: whyNoHome(from, unread) }
        : await attempt(() => readImporter(importing.client, { service, from, clock: world.clock })),
  };
}

function homeOf(homes: readonly TracedHome[], id: string): Client | undefined {
  return homes.find(({ membership }) => membership.clusterId === id)?.client;
}

interface MergedViewRequest extends Pick<SetState, 'policy'> {
  readonly membership: MembershipRecord;
  readonly service: ServiceKey;
}

async function mergedView(
  broker: Client,
  { membership, service, policy }: MergedViewRequest,
): Promise<Mark | undefined> {
  const ref = { namespace: membership.clusterset, name: recordName(service) };
  const view = maySayNames(policy)
    ? await getOrUndefined<ServiceImport>(broker, serviceImportType, ref)
    : (await listAll<ServiceImport>(broker, serviceImportType, { namespace: ref.namespace })).find(
        ({ metadata }) => metadata.name === ref.name,
      );
  const clusters = (view?.status?.clusters ?? []).map(({ cluster }) => cluster);
  return view && { at: view.metadata.creationTimestamp, detail: `of ${clusters.join(', ') || 'no cluster'}` };
}

interface ExporterRequest {
  readonly key: string;
  readonly service: ServiceKey;
  readonly home: Client | undefined;
  readonly unread: readonly string[];
}

async function readExporter(member: MemberState, request: ExporterRequest): Promise<ExporterFacts> {
  const { key, service, home, unread } = request;
  const shard = member.shards.get(key);
  const ready = shard?.spec.readyEndpoints ?? 0;
  return {
    cluster: member.id,
    home: home === undefined ? { why: whyNoHome(member.id, unread) } : await attempt(() => readExport(home, service)),
    record: shard && { at: shard.metadata.creationTimestamp, detail: `${ready} ready`, ready },
    leftOut: member.problem ?? whyNotTrusted(member.memory) ?? '',
  };
}

async function readExport(home: Client, service: ServiceKey): Promise<ExporterHome> {
  const { namespace, name } = service;
  const found = await getOrUndefined<ServiceExport>(home, serviceExportType, service);
  const slices = await listAll<EndpointSlice>(home, endpointSliceType, {
    namespace,
    labelSelector: `${serviceNameLabel}=${name}`,
  });
  return { export: found && exportMark(found), endpoints: slices.length === 0 ? undefined : sliceMark(slices) };
}

function exportMark({ metadata, status }: ServiceExport) {
  const conditions = status?.conditions;
  const wrong = [conditionOf(conditions, 'Valid'), conditionOf(conditions, 'Ready')].find(
    (one) => one?.status === 'False',
  );
  const conflict = conditionOf(conditions, 'Conflict');
  return {
    at: metadata.creationTimestamp,
    detail: conflict?.status === 'True' ? `in conflict: ${conflict.reason}` : 'created',
    problem: wrong === undefined ? '' : `${wrong.type}=False ${wrong.reason}: ${wrong.message}`,
  };
}

/** Written by Kubernetes at each change of an endpoint. */
const changeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time';

function sliceMark(slices: readonly EndpointSlice[]): Mark & { ready: number } {
  const ready = slices.flatMap(({ endpoints }) => endpoints ?? []).filter(isOffered).length;
  const times = slices.map(
    ({ metadata }) => metadata.annotations?.[changeAnnotation] ?? metadata.creationTimestamp ?? '',
  );
  return { at: times.sort().at(-1), detail: `${ready} ready`, ready };
}

interface ImporterRequest {
  readonly service: ServiceKey;
  readonly from: string;
  readonly clock: World['clock'];
}

async function readImporter(home: Client, { service, from, clock }: ImporterRequest): Promise<ImporterFacts> {
  const { namespace, name } = service;
  const nowMs = clock.wallMs();
  const found = await getOrUndefined<ServiceImport>(home, serviceImportType, service);
  const all = await listAll<EndpointSlice>(home, endpointSliceType, {
    namespace,
    labelSelector: `${importedServiceNameLabel}=${name}`,
  });
  const byCluster = Map.groupBy(all, ({ metadata }) => metadata.labels?.[sourceClusterLabel] ?? '');
  const ips = found?.spec.ips ?? [];
  const ready = conditionOf(found?.status?.conditions, 'Ready');
  return {
    import: found && {
      at: found.metadata.creationTimestamp,
      detail: ips.join(', ') || found.spec.type,
      clusters: (found.status?.clusters ?? []).map(({ cluster }) => cluster),
    },
    slices: new Map([...byCluster].map(([cluster, slices]) => [cluster, sliceMark(slices)])),
    pairs: await readPairs(home, { self: from, clock }),
    answers: found === undefined ? [] : await askResolvers(home, { service, ips, nowMs }),
    carried: {
      at: ready?.lastTransitionTime,
      detail: ready === undefined ? 'the import has no condition Ready' : `Ready=${ready.status} ${ready.reason}`,
      isReady: ready?.status === 'True',
    },
    connections: found === undefined || ips.length === 0 ? [] : await askProxies(home, service, nowMs),
  };
}

async function reporting(home: Client, part: PartName, nowMs: number): Promise<{ lease: Lease; name: string }[]> {
  const labelSelector = `${partLabel}=${part}`;
  const leases = await listAll<Lease>(home, leaseType, { namespace: systemNamespace, labelSelector });
  return leases
    .filter((lease) => partState(lease, nowMs).kind === 'reported')
    .map((lease) => ({ lease, name: `${part} on ${partState(lease, nowMs).node || lease.metadata.name}` }));
}

interface Asking {
  readonly service: ServiceKey;
  readonly ips: readonly string[];
  readonly nowMs: number;
}

async function askResolvers(home: Client, { service, ips, nowMs }: Asking): Promise<ImporterFacts['answers']> {
  const options = await getOrUndefined<ConfigMap>(home, configMapType, {
    namespace: systemNamespace,
    name: clusterSetDnsName,
  });
  const name = `${service.name}.${service.namespace}.svc.${readDnsOptions(options ?? {}).zone}`;
  const admin = new PartAdmin(home);
  const type = ips.length > 0 && ips.every((ip) => ip.includes(':')) ? 'AAAA' : 'A';
  return Promise.all(
    (await reporting(home, 'dns', nowMs)).map(async ({ lease, name: resolver }) => ({
      resolver,
      answer: await attempt(async () => {
        const query = new URLSearchParams({ name, type });
        return answerMark(await admin.ask<Explanation>(lease, `/explain?${query}`, { timeoutMs: partMsMax }), {
          ips,
          nowMs,
        });
      }),
    })),
  );
}

/** Its time is when the resolver learned of the youngest object behind the answer. */
function answerMark({ rcode, records }: Explanation, { ips, nowMs }: Pick<Asking, 'ips' | 'nowMs'>) {
  const ages = records.flatMap(({ sources }) => sources.flatMap(({ ageMs }) => ageMs ?? []));
  const texts = records.map(({ text }) => text);
  const isRight =
    rcode === 'NOERROR' &&
    texts.length > 0 &&
    (ips.length === 0 || texts.some((text) => ips.some((ip) => text.endsWith(` ${ip}`))));
  const at = ages.length === 0 ? undefined : formatTime(nowMs - Math.min(...ages));
  return { at, detail: texts.length === 0 ? rcode : texts.slice(0, 3).join(', '), isRight };
}

async function askProxies(
  home: Client,
  { namespace, name }: ServiceKey,
  nowMs: number,
): Promise<ImporterFacts['connections']> {
  const admin = new PartAdmin(home);
  return Promise.all(
    (await reporting(home, 'proxy', nowMs)).map(async ({ lease, name: from }) => ({
      from,
      result: await attempt(async () => {
        const query = new URLSearchParams({ service: `${namespace}/${name}`, count: '3', lookup: 'off' });
        const { problems, lines } = await admin.ask<Report>(lease, `/connectivity?${query}`, {
          timeoutMs: partMsMax,
        });
        const detail = problems.length > 0 ? problems.join('; ') : lines.map((line) => line.trim()).join(', ');
        return { at: formatTime(nowMs), detail, problems: problems.join('; ') };
      }),
    })),
  );
}

async function attempt<T>(work: () => Promise<T>): Promise<Read<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    return { why: describeError(error) };
  }
}
