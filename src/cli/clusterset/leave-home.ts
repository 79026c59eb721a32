// The objects in a cluster's home that membership created: imports and their slices, addresses, what policies
// and placements brought, conditions on exports. All of it goes; what people made stays.

import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { clusterIdProperty, clusterPropertyType, clusterSetProperty } from '../../clusterset/kinds/cluster-property.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { verdictsName } from '../../clusterset/membership/membership.ts';
import { resolverAuthoritySecret } from '../../clusterset/membership/resolver-authority.ts';
import { homeAccessKeys, homeAccessName } from '../../clusterset/rules/access/home-access.ts';
import {
  exportConditionTypes,
  exportedAfterAnnotation,
  isMadeHere,
  placementLabel,
  policyLabel,
  sliceManager,
} from '../../clusterset/rules/agent-marks.ts';
import { clusterSetDnsName } from '../../clusterset/rules/clusterset-dns.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { removeKey } from '../../kube/client/config-map-keys.ts';
import { configMapType } from '../../kube/objects/config-map.ts';
import { endpointSliceType, sliceManagedByLabel, sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { isOurs, managedByLabel, managerName, stubZonesName, systemNamespace } from '../../kube/objects/ours.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { serviceType } from '../../kube/objects/service.ts';

export async function cleanHome(home: Client, clusterId: string): Promise<void> {
  const placed = { labelSelector: placementLabel };
  // Labels are copied with manifests; only what the agent made as what it is goes.
  const isMade = (object: KubernetesObject) => isMadeHere(object, clusterId);
  await removeAll(home, serviceExportType, placed, isMade);
  await removeAll(home, serviceType, placed, isMade);
  await removeAll(home, serviceExportType, { labelSelector: policyLabel }, isMade);
  await removeAll(home, serviceImportType, { labelSelector: `${managedByLabel}=${managerName}` });
  await removeAll(home, endpointSliceType, {
    labelSelector: `${sliceManagedByLabel}=${sliceManager},${sourceClusterLabel}`,
  });
  await removeAll<AddressClaim>(home, addressClaimType, {}, ({ spec }) => spec.owner.kind === serviceImportType.kind);
  await clearConditions(home);
  for (const name of [verdictsName, clusterSetDnsName, stubZonesName])
    await deleteIfPresent(home, configMapType, { namespace: systemNamespace, name });
  // The mode in it is the admin's, and holds for the next set too.
  await removeKey(home, { namespace: systemNamespace, name: homeAccessName }, homeAccessKeys.podRanges);
  await deleteIfPresent(home, secretType, { namespace: systemNamespace, name: resolverAuthoritySecret });
  for (const name of [clusterIdProperty, clusterSetProperty]) {
    const property = await getOrUndefined(home, clusterPropertyType, { name });
    // One that was there before us is not ours.
    if (property !== undefined && isOurs(property)) await deleteIfPresent(home, clusterPropertyType, { name });
  }
}

async function removeAll<T extends KubernetesObject>(
  home: Client,
  type: ResourceType,
  selection: { labelSelector?: string },
  isMeant: (object: T) => boolean = () => true,
): Promise<void> {
  for (const object of await listAll<T>(home, type, selection)) {
    if (isMeant(object)) await deleteIfPresent(home, type, object.metadata);
  }
}

async function listAll<T extends KubernetesObject>(
  home: Client,
  type: ResourceType,
  selection: { labelSelector?: string } = {},
): Promise<T[]> {
  const all: T[] = [];
  for await (const page of home.listPaged<T>(type, selection)) all.push(...page.items);
  return all;
}

const withoutOrder = { metadata: { annotations: { [exportedAfterAnnotation]: null } } };

/** An export that says it is exported would lie. */
async function clearConditions(home: Client): Promise<void> {
  for (const serviceExport of await listAll<ServiceExport>(home, serviceExportType)) {
    const conditions = serviceExport.status?.conditions ?? [];
    const others = conditions.filter(({ type }) => !exportConditionTypes.includes(type));
    const hasOrder = serviceExport.metadata.annotations?.[exportedAfterAnnotation] !== undefined;
    const current = hasOrder
      ? await home.patch<ServiceExport>(serviceExportType, serviceExport.metadata, {
          kind: 'merge',
          body: withoutOrder,
        })
      : serviceExport;
    if (others.length === conditions.length) continue;
    await home.updateStatus(serviceExportType, {
      ...current,
      status: { ...serviceExport.status, conditions: others },
    });
  }
}
