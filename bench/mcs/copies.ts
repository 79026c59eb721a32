// Imports and imported slices of every cluster, watched over TLS, and a way to wait for something to hold in all of them.

import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { createInformer } from '../../src/kube/controller/informer.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  sourceClusterLabel,
} from '../../src/kube/objects/endpoint-slice.ts';
import { world } from './clusterset.ts';

const givenUpMs = 60_000;

/** A service as one cluster knows it. */
interface Imported {
  readonly isImported: boolean;
  readonly slices: readonly EndpointSlice[];
}

export interface Copies {
  /** Resolves as soon as the condition holds for the service in all clusters. */
  everywhere(name: string, condition: (imported: Imported) => boolean): Promise<void>;
  stop(): void;
}

export async function watchCopies(clusters: readonly { readonly client: Client }[]): Promise<Copies> {
  const copies = clusters.map(({ client }) => copyOf(client));
  const informers = copies.flatMap(({ imports, slices }) => [imports, slices]);
  let onChange: () => void = () => {};
  for (const informer of informers) {
    informer.on(() => onChange());
    informer.start();
  }
  await Promise.all(informers.map((informer) => informer.whenSynced()));
  return {
    everywhere: (name, condition) =>
      new Promise((resolve, reject) => {
        const error = new Error(`${name} is not everywhere as it should be after ${givenUpMs / 1000} s`);
        const timer = setTimeout(() => reject(error), givenUpMs);
        onChange = () => {
          const holds = copies.every(({ imports, slices }) =>
            condition({
              isImported: imports.get(`shop/${name}`) !== undefined,
              slices: slices.byIndex('service', name),
            }),
          );
          if (!holds) return;
          clearTimeout(timer);
          onChange = () => {};
          resolve();
        };
        onChange();
      }),
    stop: () => {
      for (const informer of informers) informer.stop();
    },
  };
}

function copyOf(client: Client) {
  const indexes = {
    service: ({ metadata }: EndpointSlice) => [metadata.labels?.[importedServiceNameLabel] ?? ''],
  };
  const of = { client, world, namespace: 'shop' };
  return {
    imports: createInformer({ ...of, type: serviceImportType }),
    slices: createInformer<EndpointSlice>({
      ...of,
      type: endpointSliceType,
      labelSelector: sourceClusterLabel,
      indexes,
    }),
  };
}
