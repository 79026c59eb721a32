// Reports this cluster's ClusterProperties at the broker: the status of the own Cluster. Policies of other clusters select by
// them. A home that does not answer withdraws nothing.

import { isSameJson } from '../../../base/json.ts';
import type { Informer } from '../../../kube/controller/informer.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import type { ClusterProperty } from '../../kinds/cluster-property.ts';
import { readProperties, reportedProperties } from '../../rules/routing/cluster-properties.ts';
import { createReporter, patchOwnStatus, type Reporter, type ReportOptions } from './reporter.ts';

export interface PropertyReportOptions extends ReportOptions {
  /** Started and stopped by others. */
  readonly properties: Informer<ClusterProperty>;
  readonly clusters: Informer<Cluster>;
}

export function createPropertyReporter(options: PropertyReportOptions): Reporter {
  const { log, properties, clusters } = options;
  const ownKey = `${options.clusterset}/${options.clusterId}`;

  async function report(): Promise<void> {
    const own = clusters.get(ownKey);
    if (own === undefined || !properties.hasSynced) return;
    const known = own.status?.properties ?? {};
    const wanted = reportedProperties(properties.values());
    if (isSameJson(wanted, readProperties(own))) return;
    // A merge patch keeps what it does not name.
    const gone = Object.keys(known).map((name) => [name, null] as const);
    await patchOwnStatus(options, { properties: { ...Object.fromEntries(gone), ...wanted } });
    log.info('reported the properties of this cluster', { properties: Object.keys(wanted).length });
  }

  const source = { on: properties.on.bind(properties), start: () => {}, stop: () => {} };
  const reporter = createReporter(options, { what: 'the properties of this cluster', source, report });
  return {
    ...reporter,
    start: () => {
      clusters.on((key) => key === ownKey && reporter.look());
      reporter.start();
      void Promise.all([properties.whenSynced(), clusters.whenSynced()]).then(reporter.look, () => {});
    },
  };
}
