// Places the FederatedServices of the broker in this cluster: makes the Service and its ServiceExport where the template
// says so, and takes them away again. What somebody else made under the same name is left alone, and said.

import { errorText } from '../../base/log.ts';
import type { WorkResult } from '../../base/queue.ts';
import { isSameJson } from '../../base/same-json.ts';
import { isInvalid } from '../../client/api-error.ts';
import type { Informer } from '../../client/informer.ts';
import { type FederatedService, isPlacedIn, serviceFromTemplate } from '../../model/federated-service.ts';
import { parseServiceKey, recordName } from '../../model/names-clusterset.ts';
import { apiVersionOf } from '../../model/object.ts';
import type { PlacementProblem } from '../../model/placement.ts';
import { type Service, serviceType } from '../../model/service.ts';
import { type ServiceExport, serviceExportType } from '../../model/service-export.ts';
import type { AgentContext } from '../context.ts';
import { ensure, ensureAbsent } from '../ensure.ts';
import type { PlacementProblems } from './problems.ts';

/** On Services and ServiceExports: the FederatedService they were made from. */
export const placementLabel = 'portolan.dev/federated-service';

/** What keeps a service out may go away without a word: other address ranges, another version of the home. */
const retryMs = 300_000;

export interface PlacementOptions {
  readonly context: AgentContext;
  readonly federated: Informer<FederatedService>;
  readonly problems: PlacementProblems;
}

export function createPlacementController({ context, federated, problems }: PlacementOptions) {
  const { copies, home, membership } = context;

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const service = parseServiceKey(key);
    const template = federated.get(`${membership.clusterset}/${recordName(service)}`);
    const isWanted = template?.metadata.deletionTimestamp === undefined && template !== undefined;
    if (!isWanted || !isPlacedIn(template, membership.clusterId)) {
      problems.clear(recordName(service));
      return remove(key);
    }
    const problem = await tryToPlace(key, template);
    if (problem === undefined) problems.clear(template.metadata.name);
    else await problems.set(template.metadata.name, problem, copies.services.get(key));
    return problem && { requeueAfterMs: retryMs };
  }

  async function remove(key: string): Promise<undefined> {
    const service = copies.services.get(key);
    const serviceExport = copies.exports.get(key);
    if (serviceExport !== undefined && isPlaced(serviceExport))
      await ensureAbsent(home, serviceExportType, serviceExport);
    if (service !== undefined && isPlaced(service)) await ensureAbsent(home, serviceType, service);
  }

  async function tryToPlace(key: string, template: FederatedService): Promise<PlacementProblem | undefined> {
    try {
      return await place(key, template);
    } catch (error) {
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
      return { state: 'Refused', message: `somebody else made a Service ${key}; delete it, or leave this cluster out` };
    await placeService(template, present);
    const presentExport = copies.exports.get(key);
    if (presentExport !== undefined && !isPlaced(presentExport)) return undefined;
    await ensure({ client: home, type: serviceExportType, present: presentExport, wanted: exportFor(template, key) });
    return undefined;
  }

  // The home adds to a Service what the template leaves open (addresses, node ports): only what it says is compared.
  async function placeService(template: FederatedService, present: Service | undefined): Promise<void> {
    const wanted = serviceFor(template);
    if (wanted === undefined) return;
    if (present === undefined) {
      await ensure({ client: home, type: serviceType, present, wanted });
      return;
    }
    const next = withTemplate(present, wanted);
    if (!isSameJson(next, present)) await home.update(serviceType, next);
  }

  return { reconcile };
}

function isPlaced(object: { metadata: { labels?: Record<string, string> } }): boolean {
  return object.metadata.labels?.[placementLabel] !== undefined;
}

function serviceFor(template: FederatedService): Service | undefined {
  const service = serviceFromTemplate(template);
  if (service === undefined) return undefined;
  const labels = { ...service.metadata.labels, [placementLabel]: template.metadata.name };
  return { ...service, metadata: { ...service.metadata, labels } };
}

function withTemplate(present: Service, wanted: Service): Service {
  const annotations = wanted.metadata.annotations && {
    ...present.metadata.annotations,
    ...wanted.metadata.annotations,
  };
  return {
    ...present,
    metadata: {
      ...present.metadata,
      labels: wanted.metadata.labels,
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: { ...present.spec, ...wanted.spec, ports: portsOf(present, wanted) },
  };
}

function portsOf(present: Service, wanted: Service): NonNullable<Service['spec']>['ports'] {
  return (wanted.spec?.ports ?? []).map((port) => {
    const before = present.spec?.ports?.find(
      (one) => one.port === port.port && (one.protocol ?? 'TCP') === (port.protocol ?? 'TCP'),
    );
    return { ...before, ...port };
  });
}

function exportFor({ metadata, spec }: FederatedService, key: string): ServiceExport {
  return {
    apiVersion: apiVersionOf(serviceExportType),
    kind: serviceExportType.kind,
    metadata: { ...parseServiceKey(key), labels: { [placementLabel]: metadata.name } },
    spec: {
      ...(spec.exportedLabels === undefined ? {} : { exportedLabels: spec.exportedLabels }),
      ...(spec.exportedAnnotations === undefined ? {} : { exportedAnnotations: spec.exportedAnnotations }),
    },
  };
}
