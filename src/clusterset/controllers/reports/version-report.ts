// Reports the version of this cluster's API server at the broker: the status of the own Cluster, for its ClusterProfile.

import type { Informer } from '../../../kube/controller/informer.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import { createReporter, patchOwnStatus, type Reporter, type ReportOptions } from './reporter.ts';

export interface VersionReportOptions extends ReportOptions {
  readonly clusters: Informer<Cluster>;
}

/** The definition of Cluster has the same bound. */
const charactersMax = 64;

export function createVersionReporter(options: VersionReportOptions): Reporter {
  const { log, home, clusters } = options;
  const ownKey = `${options.clusterset}/${options.clusterId}`;

  async function report(): Promise<void> {
    const own = clusters.get(ownKey);
    if (own === undefined) return;
    const { gitVersion } = await home.getPath<{ gitVersion?: unknown }>('/version');
    if (typeof gitVersion !== 'string' || gitVersion.length > charactersMax) return;
    if (gitVersion === own.status?.kubernetesVersion) return;
    await patchOwnStatus(options, { kubernetesVersion: gitVersion });
    log.info('reported the version of the home', { version: gitVersion });
  }

  const reporter = createReporter(options, { what: 'the version of the home', report });
  return {
    ...reporter,
    start: () => {
      reporter.start();
      void clusters.whenSynced().then(reporter.look, () => {});
    },
  };
}
