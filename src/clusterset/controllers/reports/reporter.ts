// A report of this cluster at the broker, in the status of its own Cluster: made again when its source at home changes, and
// tried again while the broker does not take it.

import { errorText, type Log } from '../../../base/log.ts';
import { Queue } from '../../../base/queue.ts';
import type { World } from '../../../base/world.ts';
import type { Client } from '../../../kube/client/client.ts';
import type { Informer } from '../../../kube/controller/informer.ts';
import type { KubernetesObject } from '../../../kube/objects/object.ts';
import { type Cluster, clusterType } from '../../kinds/cluster.ts';

export interface ReportOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly broker: Client;
  readonly systemNamespace: string;
  readonly clusterset: string;
  readonly clusterId: string;
}

export interface Reporter {
  start(): void;
  /** Looks whether there is something else to report. */
  look(): void;
  stop(): Promise<void>;
}

export interface Report {
  /** For the log, such as `the gateways of this cluster`. */
  readonly what: string;
  /** Started and stopped with the report; without one, `look` is called from outside. */
  readonly source?: Pick<Informer<KubernetesObject>, 'on' | 'start' | 'stop'>;
  readonly report: () => Promise<void>;
}

export function createReporter({ world, log }: ReportOptions, { what, source, report }: Report): Reporter {
  const queue = new Queue({
    name: `report of ${what}`,
    world,
    work: async () => {
      await report();
      return undefined;
    },
    onFailure: ({ error }) => log.info(`${what} not reported at the broker`, { error: errorText(error) }),
  });
  const look = () => queue.add('report');
  source?.on(look);
  return {
    start: () => {
      queue.start();
      source?.start();
    },
    look,
    stop: async () => {
      source?.stop();
      await queue.stop();
    },
  };
}

/**
 * Other fields of the status stay as they are. With `resourceVersion`, refused if the Cluster is another one by now:
 * conditions are one list, and several reports write theirs.
 */
export async function patchOwnStatus(
  { broker, clusterset: namespace, clusterId: name }: ReportOptions,
  status: Cluster['status'],
  resourceVersion?: string,
): Promise<void> {
  const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
  const patch = { kind: 'merge', body: { ...metadata, status } } as const;
  await broker.patch(clusterType, { namespace, name }, patch, { subresource: 'status' });
}
