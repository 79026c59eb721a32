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

export class PlacementController {
  readonly #context: PlacementOptions['context'];
  readonly #federated: PlacementOptions['federated'];
  readonly #problems: PlacementOptions['problems'];
  /** Since when a service that is to go from here has ready endpoints where it is to be. */
  readonly #takenOver = new Map<string, number>();

  constructor({ context, federated, problems }: PlacementOptions) {
    this.#context = context;
    this.#federated = federated;
    this.#problems = problems;
  }

  async reconcile(key: string): Promise<WorkResult | undefined> {
    const { membership } = this.#context;
    const service = parseServiceKey(key);
    const template = this.#federated.get(`${membership.clusterset}/${recordName(service)}`);
    const isWanted = template?.metadata.deletionTimestamp === undefined && template !== undefined;
    if (!isWanted || !isPlacedIn(template, membership.clusterId)) {
      this.#problems.clear(recordName(service));
      const waitMs = isWanted ? this.#untilTakenOverMs(key, template) : 0;
      return waitMs > 0 ? { requeueAfterMs: waitMs } : this.#remove(key);
    }
    this.#takenOver.delete(key);
    const problem = await this.#tryToPlace(key, template);
    if (problem === undefined) this.#problems.clear(template.metadata.name);
    else await this.#problems.set(template.metadata.name, problem, this.#context.copies.services.get(key));
    return problem && { requeueAfterMs: retryMs };
  }

  /**
   * A service that moves goes only when it can be reached where it moves to, and all members have had time to see
   * that.
   */
  #untilTakenOverMs(key: string, template: FederatedService): number {
    const service = parseServiceKey(key);
    const isReadyAt = (id: string) => {
      const member = this.#context.members.get(id);
      return member !== undefined && (shardOf(member, service)?.spec.readyEndpoints ?? 0) > 0;
    };
    const placed = this.#context.copies.services.get(key);
    const hasNothingToLose =
      placed === undefined || !this.#isPlaced(placed) || !isReadyAt(this.#context.membership.clusterId);
    if (hasNothingToLose || (template.spec.clusters ?? []).length === 0) return 0;
    const nowMs = this.#context.world.clock.monotonicMs();
    if (!(template.spec.clusters ?? []).some(isReadyAt)) {
      this.#takenOver.delete(key);
      return lookAgainMs;
    }
    const sinceMs = this.#takenOver.get(key) ?? nowMs;
    this.#takenOver.set(key, sinceMs);
    return Math.max(0, sinceMs + overlapMs - nowMs);
  }

  async #remove(key: string): Promise<undefined> {
    const { copies, home } = this.#context;
    this.#takenOver.delete(key);
    const service = copies.services.get(key);
    const serviceExport = copies.exports.get(key);
    if (serviceExport !== undefined && this.#isPlaced(serviceExport))
      await deleteIfPresent(home, serviceExportType, serviceExport.metadata);
    if (service !== undefined && this.#isPlaced(service)) await deleteIfPresent(home, serviceType, service.metadata);
  }

  async #tryToPlace(key: string, template: FederatedService): Promise<PlacementProblem | undefined> {
    try {
      return await this.#place(key, template);
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

  async #place(key: string, template: FederatedService): Promise<PlacementProblem | undefined> {
    const { copies } = this.#context;
    const { namespace: name } = parseServiceKey(key);
    const namespace = copies.namespaces.get(name);
    // A namespace is its owner's to make: the service follows when it is there.
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined)
      return { state: 'Pending', message: `there is no namespace ${name}` };
    const present = copies.services.get(key);
    if (present !== undefined && !this.#isPlaced(present))
      return {
        state: 'Refused',
        message: `Service ${key} has another owner; delete it, or remove this cluster from spec.clusters`,
      };
    // One that something else keeps until it has cleaned up: its going brings the key back.
    if (present?.metadata.deletionTimestamp !== undefined)
      return { state: 'Pending', message: `Service ${key} is being deleted` };
    await this.#placeService(template, present);
    const presentExport = copies.exports.get(key);
    if (presentExport !== undefined && !this.#isPlaced(presentExport)) return undefined;
    const wanted = this.#exportFor(template, key, presentExport);
    await apply({
      client: this.#context.home,
      type: serviceExportType,
      present: presentExport,
      change: replaceWith(wanted),
    });
    return undefined;
  }

  async #placeService(template: FederatedService, present: Service | undefined): Promise<void> {
    const wanted = serviceFor(template, this.#context.membership.clusterId);
    if (wanted === undefined) return;
    const why = present && whyMadeAnew(present, wanted);
    if (present === undefined || why !== undefined) return this.#make(wanted, { present, why });
    await apply({
      client: this.#context.home,
      type: serviceType,
      present,
      change: () => withTemplate(present, wanted),
    });
  }

  /** In place of one of ours that cannot be changed into it. */
  async #make(wanted: Service, { present, why }: { present?: Service; why?: string }): Promise<void> {
    const { home } = this.#context;
    if (present === undefined) {
      await apply({ client: home, type: serviceType, present, change: replaceWith(wanted) });
      return;
    }
    await deleteIfPresent(home, serviceType, present.metadata);
    const made = await home.create(serviceType, wanted);
    const message = `recreated, because its FederatedService has changed: ${why}`;
    await this.#context.events.record({ about: made, type: 'Normal', reason: 'ServiceReplaced', message });
  }

  /** On any other object the label may be a copy. */
  #isPlaced(object: KubernetesObject): boolean {
    const { name, namespace = '', labels } = object.metadata;
    const { clusterId } = this.#context.membership;
    return labels?.[placementLabel] === recordName({ name, namespace }) && isMadeHere(object, clusterId);
  }

  #exportFor({ metadata, spec }: FederatedService, key: string, present: ServiceExport | undefined): ServiceExport {
    const service = parseServiceKey(key);
    const mark = { [madeAnnotation]: madeMark(service, this.#context.membership.clusterId) };
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
}
