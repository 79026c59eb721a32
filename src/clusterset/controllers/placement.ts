// Places the FederatedServices of the broker in this cluster: makes the Service and its ServiceExport where the
// template says so, and takes them away again. A foreign object of the same name is left alone and reported.

import { errorText } from '../../base/log.ts';
import type { WorkResult } from '../../base/queue.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Informer } from '../../kube/controller/informer.ts';
import { isForbidden, isInvalid } from '../../kube/objects/api-error.ts';
import { apiVersionOf, type KubernetesObject } from '../../kube/objects/object.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import type { AgentContext } from '../copies/context.ts';
import type { FederatedService } from '../kinds/federated-service.ts';
import { type ServiceExport, serviceExportType } from '../kinds/service-export.ts';
import { shardOf } from '../members/follower.ts';
import { isMadeHere, madeAnnotation, madeMark, placementLabel } from '../rules/agent-marks.ts';
import { parseServiceKey, recordName } from '../rules/names.ts';
import { isPlacedIn, type PlacementProblem } from '../rules/placement.ts';
import { serviceFor, whyMadeAnew, withTemplate } from '../rules/plan-service.ts';
import type { PlacementProblems } from './placement-problems.ts';

/** The obstacle may disappear without an event: other address ranges, another version of the home. */
const retryMs = 300_000;
const lookAgainMs = 2_000;
/** Imports, proxies and resolvers follow within seconds; answers may be remembered for their TTL. */
const overlapMs = 15_000;

export interface PlacementOptions {
  readonly context: AgentContext;
  readonly federated: Informer<FederatedService>;
  readonly problems: PlacementProblems;
}

export function createPlacementController({ context, federated, problems }: PlacementOptions) {
  const { copies, home, membership } = context;
  /** Since when a service that is to go from here has ready endpoints where it is to be. */
  const takenOver = new Map<string, number>();

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const service = parseServiceKey(key);
    const template = federated.get(`${membership.clusterset}/${recordName(service)}`);
    const isWanted = template?.metadata.deletionTimestamp === undefined && template !== undefined;
    if (!isWanted || !isPlacedIn(template, membership.clusterId)) {
      problems.clear(recordName(service));
      const waitMs = isWanted ? untilTakenOverMs(key, template) : 0;
      return waitMs > 0 ? { requeueAfterMs: waitMs } : remove(key);
    }
    takenOver.delete(key);
    const problem = await tryToPlace(key, template);
    if (problem === undefined) problems.clear(template.metadata.name);
    else await problems.set(template.metadata.name, problem, copies.services.get(key));
    return problem && { requeueAfterMs: retryMs };
  }

  /**
   * A service that moves goes only when it can be reached where it moves to, and all members have had time to see
   * that.
   */
  function untilTakenOverMs(key: string, template: FederatedService): number {
    const service = parseServiceKey(key);
    const isReadyAt = (id: string) => {
      const member = context.members.get(id);
      return member !== undefined && (shardOf(member, service)?.spec.readyEndpoints ?? 0) > 0;
    };
    const placed = copies.services.get(key);
    const hasNothingToLose = placed === undefined || !isPlaced(placed) || !isReadyAt(membership.clusterId);
    if (hasNothingToLose || (template.spec.clusters ?? []).length === 0) return 0;
    const nowMs = context.world.clock.monotonicMs();
    if (!(template.spec.clusters ?? []).some(isReadyAt)) {
      takenOver.delete(key);
      return lookAgainMs;
    }
    const sinceMs = takenOver.get(key) ?? nowMs;
    takenOver.set(key, sinceMs);
    return Math.max(0, sinceMs + overlapMs - nowMs);
  }

  async function remove(key: string): Promise<undefined> {
    takenOver.delete(key);
    const service = copies.services.get(key);
    const serviceExport = copies.exports.get(key);
    if (serviceExport !== undefined && isPlaced(serviceExport))
      await deleteIfPresent(home, serviceExportType, serviceExport.metadata);
    if (service !== undefined && isPlaced(service)) await deleteIfPresent(home, serviceType, service.metadata);
  }

  async function tryToPlace(key: string, template: FederatedService): Promise<PlacementProblem | undefined> {
    try {
      return await place(key, template);
    } catch (error) {
      if (isForbidden(error))
        return {
          state: 'Refused',
          message: `${errorText(error)}; apply deploy/manifests/services.yaml in this cluster`,
        };
      if (!isInvalid(error)) throw error;
      return { state: 'Refused', message: errorText(error) };
    }
  }

  async function place(key: string, template: FederatedService): Promise<PlacementProblem | undefined> {
    const { namespace: name } = parseServiceKey(key);
    const namespace = copies.namespaces.get(name);
    // A namespace is its owner's to make: the service follows when it is there.
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined)
      return { state: 'Pending', message: `there is no namespace ${name}` };
    const present = copies.services.get(key);
    if (present !== undefined && !isPlaced(present))
      return {
        state: 'Refused',
        message: `Service ${key} has another owner; delete it, or remove this cluster from spec.clusters`,
      };
    // One that something else keeps until it has cleaned up: its going brings the key back.
    if (present?.metadata.deletionTimestamp !== undefined)
      return { state: 'Pending', message: `Service ${key} is being deleted` };
    await placeService(template, present);
    const presentExport = copies.exports.get(key);
    if (presentExport !== undefined && !isPlaced(presentExport)) return undefined;
    const wanted = exportFor(template, key, presentExport);
    await apply({ client: home, type: serviceExportType, present: presentExport, change: replaceWith(wanted) });
    return undefined;
  }

  async function placeService(template: FederatedService, present: Service | undefined): Promise<void> {
    const wanted = serviceFor(template, membership.clusterId);
    if (wanted === undefined) return;
    const why = present && whyMadeAnew(present, wanted);
    if (present === undefined || why !== undefined) return make(wanted, { present, why });
    await apply({ client: home, type: serviceType, present, change: () => withTemplate(present, wanted) });
  }

  /** In place of one of ours that cannot be changed into it. */
  async function make(wanted: Service, { present, why }: { present?: Service; why?: string }): Promise<void> {
    if (present === undefined) {
      await apply({ client: home, type: serviceType, present, change: replaceWith(wanted) });
      return;
    }
    await deleteIfPresent(home, serviceType, present.metadata);
    const made = await home.create(serviceType, wanted);
    const message = `recreated, because its FederatedService has changed: ${why}`;
    await context.events.record({ about: made, type: 'Normal', reason: 'ServiceReplaced', message });
  }

  /** On any other object the label may be a copy. */
  function isPlaced(object: KubernetesObject): boolean {
    const { name, namespace = '', labels } = object.metadata;
    return labels?.[placementLabel] === recordName({ name, namespace }) && isMadeHere(object, membership.clusterId);
  }

  function exportFor(
    { metadata, spec }: FederatedService,
    key: string,
    present: ServiceExport | undefined,
  ): ServiceExport {
    const service = parseServiceKey(key);
    const mark = { [madeAnnotation]: madeMark(service, membership.clusterId) };
    return {
      apiVersion: apiVersionOf(serviceExportType),
      kind: serviceExportType.kind,
      metadata: {
        ...service,
        labels: { [placementLabel]: metadata.name },
        annotations: { ...present?.metadata.annotations, ...mark },
      },
      spec: {
        exportedLabels: spec.exportedLabels,
        exportedAnnotations: spec.exportedAnnotations,
      },
    };
  }

  return { reconcile };
}
