// One service in every cluster: export, import, endpoints, whether traffic is carried, and the explanation of its merge with
// a way out of each conflict. Pure but for the copies it reads.

import { explainService, NotExported } from '../../clusterset/explain/explain-service.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import { isOffered, remoteFamily } from '../../clusterset/rules/networks/remote-endpoint.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type EndpointSlice, sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import type { Condition } from '../../kube/objects/object.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { byService } from '../homes/kinds.ts';
import { idOf, type Landscape, setStateOf } from '../rows/landscape.ts';
import type { ConditionView, EndpointView, ServiceInCluster, ServiceView } from '../wire/views.ts';
import { resolverOf } from './ask.ts';
import { conflictView } from './conflicts.ts';

const endpointsShownMax = 200;

export function serviceView(landscape: Landscape, key: string): ServiceView {
  const state = setStateOf(landscape, { keys: [key] });
  const { namespace, name } = parseServiceKey(key);
  const { zone } = readSetPolicy(state?.set);
  const clusters = landscape.homes
    .filter(({ member }) => member !== undefined)
    .map((watch) => inCluster(watch, key))
    .sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  return { key, dnsName: `${name}.${namespace}.svc.${zone}`, ...explanationOf(state, key), clusters };
}

function explanationOf(state: ReturnType<typeof setStateOf>, key: string): Pick<ServiceView, 'explanation' | 'whyNot'> {
  if (state === undefined)
    return {
      explanation: undefined,
      whyNot:
        'no broker that you may see is among the homes of this dashboard; the conditions of each export say what is known',
    };
  try {
    const { type, decider, why, fields, conflicts, ifLeft } = explainService(state, key);
    const views = conflicts.map((one) => conflictView(one, key));
    return { explanation: { type, decider, why, fields, conflicts: views, ifLeft }, whyNot: '' };
  } catch (error) {
    if (error instanceof NotExported) return { explanation: undefined, whyNot: error.message };
    throw error;
  }
}

function inCluster(watch: HomeWatch, key: string): ServiceInCluster {
  const member = watch.member!;
  const found = member.exports.get(key);
  const imported = member.imports.get(key);
  const slices = onceEach(member.slices.byIndex(byService, key), idOf(watch));
  const endpoints = slices.flatMap((slice) => endpointsOf(slice, idOf(watch)));
  const { asOfMs, denied } = watch.row();
  const own = ['serviceexports', 'serviceimports', 'endpointslices', 'services'];
  return {
    cluster: idOf(watch),
    isCurrent: watch.isCurrent(),
    asOfMs,
    denied: denied.filter((kind) => own.includes(kind)),
    export: found && {
      sinceMs: timeOf(found.metadata.creationTimestamp),
      conditions: (found.status?.conditions ?? []).map(conditionView),
    },
    import: imported && {
      type: imported.spec.type,
      ips: imported.spec.ips ?? [],
      ports: (imported.spec.ports ?? []).map(({ name, port, protocol = 'TCP' }) =>
        [name, `${port}/${protocol}`].filter((part) => part).join(' '),
      ),
      clusters: (imported.status?.clusters ?? []).map(({ cluster }) => cluster),
      sinceMs: timeOf(imported.metadata.creationTimestamp),
      conditions: (imported.status?.conditions ?? []).map(conditionView),
    },
    endpoints: endpoints.slice(0, endpointsShownMax),
    endpointCount: endpoints.length,
    traffic: trafficOf(watch, imported?.status?.conditions, imported !== undefined),
    hasResolver: resolverOf(watch) !== undefined,
  };
}

function trafficOf(
  watch: HomeWatch,
  conditions: readonly Condition[] | undefined,
  isImported: boolean,
): ServiceInCluster['traffic'] {
  if (!watch.isCurrent()) return { health: 'unknown', says: 'its home does not answer' };
  if (!isImported) return { health: 'unknown', says: 'not imported here' };
  const ready = conditionOf(conditions, 'Ready');
  if (ready === undefined || ready.status === 'Unknown')
    return { health: 'unknown', says: ready?.message ?? 'no agent has written it yet' };
  return { health: ready.status === 'True' ? 'ok' : 'failed', says: ready.message };
}

/** An import repeats the cluster's own endpoints. */
function onceEach(slices: readonly EndpointSlice[], own: string): readonly EndpointSlice[] {
  const sourceOf = ({ metadata }: EndpointSlice) => metadata.labels?.[sourceClusterLabel];
  const hasOwn = slices.some((slice) => sourceOf(slice) === undefined);
  return hasOwn ? slices.filter((slice) => sourceOf(slice) !== own) : slices;
}

function endpointsOf({ metadata, endpoints, ports }: EndpointSlice, own: string): EndpointView[] {
  const cluster = metadata.labels?.[sourceClusterLabel] ?? own;
  const port = (ports ?? []).map((one) => one.port).join(', ');
  return endpoints.map((endpoint) => {
    const { conditions, addresses = [], zone = '' } = endpoint;
    const isLeaving = conditions?.terminating === true;
    const says = isLeaving ? 'leaving' : isOffered(endpoint) ? 'ready' : 'not ready';
    return {
      address: remoteFamily(addresses[0]) === undefined ? addresses.join(', ') : 'in another network',
      port,
      cluster,
      health: isOffered(endpoint) && !isLeaving ? 'ok' : 'failed',
      says,
      zone,
      sinceMs: timeOf(metadata.creationTimestamp),
    };
  });
}

function conditionView({ type, status, reason, message, lastTransitionTime }: Condition): ConditionView {
  return { type, status, reason, message, sinceMs: timeOf(lastTransitionTime) };
}

function timeOf(text: string | undefined): number | undefined {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? undefined : ms;
}
