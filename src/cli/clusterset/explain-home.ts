// Explains one service from a cluster's own home, while the broker is unreachable: the last import, and the last
// conditions of the cluster's own export.

import { readVerdicts } from '../../clusterset/explain/set-state.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { describeLease } from '../../clusterset/rules/leases/lease-memory.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import type { Condition } from '../../kube/objects/object.ts';
import { unreachableError } from '../exit-codes.ts';
import { clustersOf } from '../health/status-home.ts';
import { formatOutput, formatTable, type OutputFormat } from '../table.ts';

export interface HomeExplanation {
  readonly service: string;
  readonly brokerProblem: string;
  readonly import: ServiceImport['spec'] | undefined;
  readonly clusters: readonly { readonly cluster: string; readonly lease: string }[];
  /** Conditions of this cluster's own export; absent if it does not export the service. */
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
  const object = await getOrUndefined<ServiceImport>(home, serviceImportType, ref);
  const serviceExport = await getOrUndefined<ServiceExport>(home, serviceExportType, ref);
  if (object === undefined && serviceExport === undefined) {
    throw unreachableError(
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
      lease: `unknown (was ${describeLease(verdicts.get(cluster))})`,
    })),
    conditions: serviceExport && (serviceExport.status?.conditions ?? []),
  };
}

export function formatHomeExplanation(explanation: HomeExplanation, format: OutputFormat): readonly string[] {
  const names = explanation.clusters.map(({ cluster }) => cluster);
  return formatOutput(format, { value: explanation, names, text: () => explanationText(explanation) });
}

function explanationText(explanation: HomeExplanation): string[] {
  const { service, brokerProblem, import: spec, clusters, conditions } = explanation;
  const ports = (spec?.ports ?? []).map(({ name = '(unnamed)', port, protocol }) => `${name} ${port}/${protocol}`);
  return [
    `the broker does not answer (${brokerProblem}): this is the last known state of ${service}, and may be outdated`,
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
