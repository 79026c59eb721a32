// A service of the clusterset as a PeerExport selects it: its ServiceImport stands for a Service, with the endpoints of every
// cluster that exports it. So a peer sees one mesh, not one cluster. Pure.

import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { Service, ServicePort } from '../../kube/objects/service.ts';

export const importedServiceType: ResourceType = {
  group: 'multicluster.x-k8s.io',
  version: 'v1beta1',
  plural: 'serviceimports',
  kind: 'ServiceImport',
  isNamespaced: true,
};

export interface ImportedService extends KubernetesObject {
  spec?: { readonly ports?: readonly ServicePort[] | null };
}

export function serviceOfImport({ metadata, spec }: ImportedService): Service {
  const { name, namespace, labels, annotations, resourceVersion, uid } = metadata;
  const ports = (spec?.ports ?? []).map(({ name: own, port, protocol, appProtocol }) => ({
    ...(own === undefined ? {} : { name: own }),
    ...{ port, protocol, appProtocol },
  }));
  const kept = { name, namespace, labels, annotations, resourceVersion, uid };
  return { apiVersion: 'v1', kind: 'Service', metadata: kept, spec: { ports } } as Service;
}

/** The name that the clusterset has for a port of a cluster's own Service: slices of the import carry it. */
export function importedPortName(port: ServicePort, imported: Service | undefined): string | undefined {
  const same = imported?.spec?.ports?.find((one) => one.port === port.port && isTcp(one) === isTcp(port));
  return same && (same.name ?? '');
}

export function isTcp({ protocol }: ServicePort): boolean {
  return (protocol ?? 'TCP') === 'TCP';
}
