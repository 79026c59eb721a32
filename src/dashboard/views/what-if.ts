// Plans an export that is added or taken back, by the rules of `portolan plan`, on copies: nothing is written, not even as a
// dry run. Pure but for the copies it reads.

import type { ClusterFacts } from '../../clusterset/explain/predict.ts';
import { previewChange } from '../../clusterset/explain/preview-change.ts';
import type { SetState } from '../../clusterset/explain/set-state.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { byService } from '../homes/kinds.ts';
import { homeOf, idOf, type Landscape, setStateOf } from '../rows/landscape.ts';
import type { PlanView } from '../wire/views.ts';
import { conflictView } from './conflicts.ts';
import { QuestionError } from './errors.ts';

export interface PlanQuestion {
  readonly cluster: string;
  readonly key: string;
  readonly change: 'export' | 'unexport';
}

export function planChange(landscape: Landscape, { cluster, key, change }: PlanQuestion): PlanView {
  if (!/^[-a-z0-9]{1,63}\/[-a-z0-9]{1,63}$/.test(key)) throw new QuestionError(400, 'service: write NAMESPACE/NAME');
  const watch = homeOf(landscape, cluster);
  if (watch === undefined)
    throw new QuestionError(404, `cluster ${cluster}: its home is not among those of this dashboard`);
  if (!watch.isCurrent())
    throw new QuestionError(503, `cluster ${cluster}: its home does not answer, so nothing can be planned`);
  const state = setStateOf(landscape, { keys: [key], viewpoint: watch });
  if (state === undefined)
    throw new QuestionError(
      403,
      'planning needs the broker, and none that you may see is among the homes of this dashboard',
    );
  const present = factsOf(watch, { state, key, nowMs: landscape.nowMs });
  const next = changed(present, { key, change, nowMs: landscape.nowMs });
  const preview = previewChange({ state, present, next }, key);
  return {
    cluster,
    service: key,
    change,
    conditions: preview.conditions,
    changes: preview.changes,
    clusters: preview.clusters,
    conflicts: preview.conflicts.map((one) => conflictView(one, key)),
    elsewhere: preview.elsewhere,
    flip: preview.flip,
  };
}

function changed(
  present: ClusterFacts,
  { key, change, nowMs }: { readonly key: string; readonly change: string; readonly nowMs: number },
): ClusterFacts {
  const exports = new Map(present.exports);
  if (change === 'unexport') {
    if (!exports.delete(key)) throw new QuestionError(404, `cluster ${present.id} does not export ${key}`);
  } else {
    if (exports.has(key)) throw new QuestionError(409, `cluster ${present.id} exports ${key} already`);
    exports.set(key, newExport(key, nowMs));
  }
  return { ...present, exports };
}

function newExport(key: string, nowMs: number): ServiceExport {
  const metadata = { ...parseServiceKey(key), creationTimestamp: formatTime(nowMs) };
  return { apiVersion: apiVersionOf(serviceExportType), kind: serviceExportType.kind, metadata } as ServiceExport;
}

/** The service as it is in the home of one cluster. */
function factsOf(
  watch: HomeWatch,
  { state, key, nowMs }: { readonly state: SetState; readonly key: string; readonly nowMs: number },
): ClusterFacts {
  const { services, exports, slices, namespaces } = watch.member!;
  const id = idOf(watch);
  const own = state.members.find((one) => one.id === id);
  const service = services.get(key);
  const found = exports.get(key);
  const { namespace } = parseServiceKey(key);
  const isThere = namespaces.get(namespace) !== undefined || namespaces.state().kind === 'denied';
  return {
    id,
    verdict: 'alive',
    namespaces: new Set(isThere ? [namespace] : []),
    services: new Map(service === undefined ? [] : [[key, service]]),
    exports: new Map(found === undefined ? [] : [[key, found]]),
    slices: slices.byIndex(byService, key),
    addresses: own?.cluster.spec,
    storedAt: new Map([[key, own?.shards.get(key)?.metadata.creationTimestamp ?? formatTime(nowMs)]]),
    mayExport: own?.cluster.spec.mayExport,
  };
}
