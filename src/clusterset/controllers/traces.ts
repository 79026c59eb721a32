// Tells of the way of an export, where somebody listens: one trace for each new record, from the export to the import in every
// cluster. A span ends with the write that it tells of; one whose write fails is begun again with the next attempt.

import { carriedTrace } from '../../base/telemetry/carried-trace.ts';
import { beginStep } from '../../base/telemetry/steps.ts';
import type { TraceSpan } from '../../base/world.ts';
import type { AgentContext } from '../copies/context.ts';
import type { CountedRecord } from '../copies/counted-records.ts';
import type { ServiceExport } from '../kinds/service-export.ts';
import type { ServiceImport } from '../kinds/service-import.ts';
import type { ServiceKey } from '../rules/names.ts';
import { ImportedRecords } from '../rules/propagation.ts';

/** An export that waited longer was not under way all the time. */
const exportMsMax = 600_000;

type Context = Pick<AgentContext, 'world' | 'membership'>;

export interface ExportTrace {
  /** The endpoints are written; returns what the record carries. */
  endpointsWritten(): string | undefined;
  recordWritten(): void;
}

const noExportTrace: ExportTrace = { endpointsWritten: () => undefined, recordWritten: () => {} };

/** Begins the trace of an export that is about to be published for the first time. */
export function traceExport(
  { world, membership }: Context,
  service: ServiceKey,
  serviceExport: ServiceExport,
): ExportTrace {
  const { tracing, clock } = world;
  if (tracing === undefined) return noExportTrace;
  const where = { cluster: membership.clusterId, service };
  const nowMs = clock.wallMs();
  const createdMs = Date.parse(serviceExport.metadata.creationTimestamp ?? '');
  const startMs = createdMs <= nowMs && nowMs - createdMs < exportMsMax ? createdMs : nowMs;
  const whole = beginStep(tracing, 'export', { ...where, parent: carriedTrace(serviceExport), startMs });
  const parent = whole.traceparent;
  const endpoints = beginStep(tracing, 'endpoints', { ...where, parent, startMs: nowMs });
  let record: TraceSpan | undefined;
  return {
    endpointsWritten: () => {
      endpoints.end(clock.wallMs());
      record = beginStep(tracing, 'record', { ...where, parent, startMs: clock.wallMs() });
      return record.traceparent;
    },
    recordWritten: () => {
      record?.end(clock.wallMs());
      whole.end(clock.wallMs());
    },
  };
}

export interface ImportTrace {
  /** For the import. */
  readonly traceparent: string | undefined;
  importWritten(): void;
  slicesWritten(): void;
}

const noImportTrace: ImportTrace = { traceparent: undefined, importWritten: () => {}, slicesWritten: () => {} };

interface Imported {
  readonly records: readonly CountedRecord[];
  /** The import before it is written. */
  readonly present: ServiceImport | undefined;
}

export class ImportTraces {
  readonly #context: Context;
  /** Records that were told of. */
  readonly #told = new ImportedRecords();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Continues the trace of the newest record that is not imported yet. */
  begin(service: ServiceKey, { records, present }: Imported): ImportTrace {
    const { world, membership } = this.#context;
    const { tracing, clock } = world;
    const newest = tracing === undefined ? undefined : this.#newest(service, records, present);
    if (tracing === undefined || newest === undefined) return noImportTrace;
    const where = { cluster: membership.clusterId, service };
    const startMs = clock.wallMs();
    const whole = beginStep(tracing, 'import', { ...where, parent: carriedTrace(newest.record), startMs });
    let slices: TraceSpan | undefined;
    return {
      traceparent: whole.traceparent,
      importWritten: () => {
        whole.end(clock.wallMs());
        slices = beginStep(tracing, 'slices', { ...where, parent: whole.traceparent, startMs: clock.wallMs() });
      },
      slicesWritten: () => {
        slices?.end(clock.wallMs());
        this.#told.isNew(service, newest.cluster, newest.record.metadata.uid ?? '');
      },
    };
  }

  #newest(service: ServiceKey, records: readonly CountedRecord[], present: ServiceImport | undefined) {
    const imported = new Set((present?.status?.clusters ?? []).map(({ cluster }) => cluster));
    return records
      .filter(({ cluster, record }) => !imported.has(cluster) && carriedTrace(record) !== undefined)
      .filter(({ cluster, record }) => !this.#told.has(service, cluster, record.metadata.uid ?? ''))
      .reduce<CountedRecord | undefined>(
        (last, one) => (last === undefined || one.shard.exportedAt > last.shard.exportedAt ? one : last),
        undefined,
      );
  }
}
