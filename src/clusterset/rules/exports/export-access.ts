// Which clusters may call an exported service from outside, as the exporting home has it: the limit of the export itself,
// once the export is accepted. Pure.

import type { ServiceExport } from '../../kinds/service-export.ts';
import { exportedReasons } from '../export-conditions.ts';
import { readExportRequest } from '../export-request.ts';

export interface ExportAccess {
  /** Ids of the clusters that may call it; undefined is all. */
  readonly exportTo: readonly string[] | undefined;
}

/**
 * Undefined while nobody may: the agent has not accepted the export, or the set's admin refuses it. While the broker is
 * away, an export that was accepted stays so. The limit is read from the export, not from its status, so that it holds as
 * soon as it is written.
 */
export function accessOf(serviceExport: ServiceExport): ExportAccess | undefined {
  const conditions = serviceExport.status?.conditions;
  const list = Array.isArray(conditions) ? conditions : [];
  const of = (type: string) => list.find((condition) => condition?.type === type);
  if (serviceExport.metadata.deletionTimestamp !== undefined || of('Valid')?.status !== 'True') return undefined;
  const ready = of('Ready');
  const isAccepted = ready !== undefined && (exportedReasons.has(ready.reason) || ready.reason === 'BrokerAway');
  return isAccepted ? { exportTo: readExportRequest(serviceExport).exportTo } : undefined;
}
