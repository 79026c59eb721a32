// Services of the clusterset and the slices behind them, for whatever leads peers to their endpoints. A home that does not have
// ServiceImports, or does not let us read them, delays nothing: it has none.

import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type EndpointSlice, endpointSliceType, importedServiceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import { type ImportedService, importedServiceType, serviceOfImport } from '../../peering/kinds/imported-service.ts';
import type { SourceOptions } from './source.ts';

export interface ImportedServices {
  /** By `namespace/name`, each as a Service. */
  get(key: string): Service | undefined;
  inNamespace(namespace: string): Service[];
  slicesOf(key: string): EndpointSlice[];
  /** Resolves when they have been read, or cannot be read here. */
  whenKnown(): Promise<void>;
  stop(): void;
}

export interface ImportListeners {
  readonly importsChanged: () => void;
  /** With `namespace/name` of the service. */
  readonly slicesChanged: (service: string) => void;
}

const forbidden = 403;

export function watchImportedServices(
  { client, world, log }: Omit<SourceOptions, 'views'>,
  listeners: ImportListeners,
): ImportedServices {
  const where = { client, world, log };
  const imports = createInformer<ImportedService, Service>({
    ...{ ...where, type: importedServiceType, keep: serviceOfImport },
    indexes: { namespace: ({ metadata }) => [metadata.namespace ?? ''] },
  });
  const slices = createInformer<EndpointSlice>({
    ...{ ...where, type: endpointSliceType, labelSelector: importedServiceNameLabel },
    indexes: { service: (slice) => [serviceKeyOf(slice)] },
  });
  imports.on(listeners.importsChanged);
  slices.on((_key, next, previous) => {
    for (const slice of [previous, next]) if (slice !== undefined) listeners.slicesChanged(serviceKeyOf(slice));
  });
  imports.start();
  slices.start();
  return {
    get: (key) => imports.get(key),
    inNamespace: (namespace) => imports.byIndex('namespace', namespace),
    slicesOf: (key) => slices.byIndex('service', key),
    whenKnown: async () =>
      void (await Promise.all([Promise.race([imports.whenSynced(), unreadable(imports)]), slices.whenSynced()])),
    stop: () => {
      imports.stop();
      slices.stop();
    },
  };
}

function unreadable(imports: Informer<Service>): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      const { state } = imports.status();
      if (state.kind === 'unserved' || (state.kind === 'failing' && state.code === forbidden)) resolve();
    };
    imports.onStatus(look);
    look();
  });
}

function serviceKeyOf({ metadata }: EndpointSlice): string {
  return `${metadata.namespace ?? ''}/${metadata.labels?.[importedServiceNameLabel] ?? ''}`;
}
