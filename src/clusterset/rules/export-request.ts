// The options of a ServiceExport, and notes on invalid ones. Pure. A limit
// that cannot be read is never wider than what was asked.

import type { Service } from '../../kube/objects/service.ts';
import type { StalenessPolicy } from '../kinds/cluster-set.ts';
import {
  drainAnnotation,
  exportToAnnotation,
  exportToOf,
  isSealed,
  onStaleAnnotation,
  type ServiceExport,
  shareAnnotation,
} from '../kinds/service-export.ts';
import { clusterIdProblem } from './broker-layout.ts';
import { readExportedMetadata } from './exported-metadata.ts';
import { parseStaleness } from './leases/staleness.ts';

export interface ExportRequest {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Ids of the clusters that may import it; undefined is all. */
  readonly exportTo: string[] | undefined;
  /** Whether only those that it is for may read it at the broker. */
  readonly isSealed: boolean;
  readonly onStale: StalenessPolicy | undefined;
  readonly isDraining: boolean;
  /** Percent of its share that the exporter wants; undefined is all. */
  readonly share: number | undefined;
  /** Parts that could not be read, and the values used instead. */
  readonly notes: readonly string[];
}

/** As the definition of ServiceShard has it. */
export const portsMax = 1000;
const exportToMax = 1000;
const idsShownMax = 5;

export function readExportRequest({ metadata, spec }: ServiceExport): ExportRequest {
  const exported = readExportedMetadata({ labels: spec?.exportedLabels, annotations: spec?.exportedAnnotations });
  const ids = exportToOf({ metadata } as ServiceExport);
  const wrong = ids?.filter((id) => clusterIdProblem(id) !== undefined) ?? [];
  const right = ids?.filter((id) => clusterIdProblem(id) === undefined);
  const staleness = metadata.annotations?.[onStaleAnnotation];
  const onStale = parseStaleness(staleness);
  const share = metadata.annotations?.[shareAnnotation];
  return {
    labels: exported.labels,
    annotations: exported.annotations,
    exportTo: right?.slice(0, exportToMax),
    isSealed: isSealed({ metadata }),
    onStale,
    isDraining: metadata.annotations?.[drainAnnotation] === 'true',
    share: parseShare(share),
    notes: [
      ...wrongIds(wrong, right ?? []),
      ...((right?.length ?? 0) > exportToMax ? [`${exportToAnnotation} names more than ${exportToMax} clusters`] : []),
      ...(staleness === undefined || onStale !== undefined ? [] : [wrongStaleness(staleness)]),
      ...(share === undefined || isShare(share) ? [] : [wrongShare(share)]),
      ...exported.notes,
    ],
  };
}

/** Why a service that may be exported as such cannot be; undefined if it can. */
export function unexportable(service: Service, key: string): string | undefined {
  const count = service.spec?.ports?.length ?? 0;
  if (count <= portsMax) return undefined;
  return `service ${key} has ${count} ports, at most ${portsMax} can be exported; split it into several`;
}

function wrongIds(wrong: readonly string[], right: readonly string[]): string[] {
  if (wrong.length === 0) return [];
  const shown = wrong.slice(0, idsShownMax).map((id) => JSON.stringify(id.slice(0, 70)));
  const more = wrong.length > idsShownMax ? ` and ${wrong.length - idsShownMax} more` : '';
  const rest = right.length === 0 ? 'nobody else imports it' : `only ${right.length} of those named import it`;
  return [`${exportToAnnotation}: ${shown.join(', ')}${more} cannot be a cluster, ${rest}`];
}

/** A part that cannot be read lowers nothing: the least that a typing error can do. */
function parseShare(text: string | undefined): number | undefined {
  return text !== undefined && isShare(text) && Number(text) < 100 ? Number(text) : undefined;
}

function isShare(text: string): boolean {
  return /^[1-9]\d{0,2}$/.test(text) && Number(text) <= 100;
}

function wrongShare(text: string): string {
  return `${shareAnnotation}: ${JSON.stringify(text.slice(0, 70))} is no number from 1 to 100, its share is not lowered`;
}

function wrongStaleness(text: string): string {
  return `${onStaleAnnotation}: ${JSON.stringify(text.slice(0, 70))} is none of Withdraw, NotReady and Keep, the clusterset's policy holds`;
}
