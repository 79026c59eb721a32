// What a cluster's own home can say of one service while the broker is away: the import as it was last made, and what the
// cluster's own export was last told.

import type { Client } from '../client/client.ts';
import { describeLease } from '../model/lease-memory.ts';
import { parseServiceKey } from '../model/names-clusterset.ts';
import type { Condition } from '../model/object.ts';
import { type ServiceExport, serviceExportType } from '../model/service-export.ts';
import { type ServiceImport, serviceImportType } from '../model/service-import.ts';
import { find } from './install.ts';
import { readVerdicts } from './set-state.ts';
import { clustersOf } from './status-home.ts';
import { formatTable, type OutputFormat } from './table.ts';

export interface HomeExplanation {
  readonly service: string;
  readonly brokerProblem: string;
  readonly import: ServiceImport['spec'] | undefined;
  readonly clusters: readonly { readonly cluster: string; readonly lease: string }[];
  /** Of this cluster's own export; absent if it does not export the service. */
  readonly conditions: readonly Condition[] | undefined;
}

interface HomeExplainRequest {
  readonly home: Client;
  readonly key: string;
  /** Why the broker could not be asked. */
  readonly why: string;
}

export async function explainAtHome({ home, key, why }: HomeExplainRequest): Promise<HomeExplanation> {
  const ref = parseServiceKey(key);
  const object = await find<ServiceImport>(home, serviceImportType, ref);
  const serviceExport = await find<ServiceExport>(home, serviceExportType, ref);
  if (object === undefined && serviceExport === undefined) {
    throw new Error(
      `service ${key}: the broker does not answer (${why}), and this cluster has no import or export of it`,
    );
  }
  const verdicts = await readVerdicts(home);
  return {
    service: key,
    brokerProblem: why,
    import: object?.spec,
    clusters: (object === undefined ? [] : clustersOf(object)).map((cluster) => ({
      cluster,
      lease: describeLease(verdicts.get(cluster)),
    })),
    conditions: serviceExport && (serviceExport.status?.conditions ?? []),
  };
}

export function formatHomeExplanation(explanation: HomeExplanation, format: OutputFormat): string[] {
  if (format === 'json') return [JSON.stringify(explanation, undefined, 2)];
  const { service, brokerProblem, import: spec, clusters, conditions } = explanation;
  const ports = (spec?.ports ?? []).map(({ name = '(unnamed)', port, protocol }) => `${name} ${port}/${protocol}`);
  return [
    `the broker does not answer (${brokerProblem}): this is what the cluster last knew of ${service}, and it may be old`,
    '',
    spec === undefined ? 'not imported here' : `${spec.type}, ports ${ports.join(', ') || 'none'}`,
    ...(spec?.ips === undefined ? [] : [`addresses ${spec.ips.join(', ')}`]),
    ...formatTable(
      ['CLUSTER', 'LEASE'],
      clusters.map(({ cluster, lease }) => [cluster, lease]),
    ),
    ...(conditions ?? []).map(({ type, status, reason, message }) => `export: ${type} ${status}/${reason} ${message}`),
  ];
}
