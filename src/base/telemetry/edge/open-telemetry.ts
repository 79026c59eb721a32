// Sends spans and metrics by OTLP with the SDK of OpenTelemetry. Loaded only where a receiver is named; the build puts the SDK into
// this one file. A receiver that is away costs a bounded queue and a line in the log.

import { DiagLogLevel, diag, ROOT_CONTEXT, type SpanContext, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from '../../log.ts';
import type { PartMetrics } from '../../real/process-metrics.ts';
import type { Clock, Tracing } from '../../world.ts';
import { type MetricPoints, metricPoints } from '../metric-points.ts';
import type { TelemetrySettings } from '../settings.ts';
import { formatTraceparent, parseTraceparent } from '../traceparent.ts';

export interface TelemetryOptions {
  readonly settings: TelemetrySettings;
  readonly clock: Clock;
  readonly log: Log;
  /** Attributes of this process; the standard variables win. */
  readonly resource: Readonly<Record<string, string | number>>;
  readonly version: string;
  readonly metrics: () => readonly PartMetrics[];
}

export interface Telemetry {
  /** Absent if no traces are sent. */
  readonly tracing: Tracing | undefined;
  /** Sends what is left. */
  stop(): Promise<void>;
}

const complaintMs = 60_000;

export function startOpenTelemetry(options: TelemetryOptions): Telemetry {
  const { settings, resource: attributes } = options;
  complainTo(options);
  const resource = resourceFromAttributes(attributes).merge(detectResources({ detectors: [envDetector] }));
  const traces = settings.sendsTraces
    ? new TracerProvider({
        resource,
        sampler: samplerOf(settings.sampler),
        spanProcessors: [
          new BatchSpanProcessor({ exporter: new OTLPTraceExporter(), scheduledDelayMillis: settings.spanDelayMs }),
        ],
      })
    : undefined;
  const meters = settings.sendsMetrics ? new MeterProvider({ resource, readers: [readerOf(options)] }) : undefined;
  return {
    tracing: traces && tracingOf(traces, options.version),
    stop: async () => {
      await Promise.allSettled([traces?.shutdown(), meters?.shutdown()]);
    },
  };
}

/** The SDK tells of each failed attempt: one line a minute is enough. */
function complainTo({ log, clock }: TelemetryOptions): void {
  let lastMs = Number.NEGATIVE_INFINITY;
  const complain = (text: string, ...more: unknown[]) => {
    if (clock.monotonicMs() - lastMs < complaintMs) return;
    lastMs = clock.monotonicMs();
    log.warn('OpenTelemetry: not everything is sent', { error: [text, ...more].join(' ').slice(0, 500) });
  };
  const silent = () => {};
  const logger = { error: complain, warn: complain, info: silent, debug: silent, verbose: silent };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

function samplerOf({ kind, ratio, isParentBased }: TelemetrySettings['sampler']) {
  const root =
    kind === 'on'
      ? new AlwaysOnSampler()
      : kind === 'off'
        ? new AlwaysOffSampler()
        : new TraceIdRatioBasedSampler(ratio);
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}

function tracingOf(provider: TracerProvider, version: string): Tracing {
  const tracer = provider.getTracer('portolan', version);
  return {
    begin: (step, { parent, startMs, attributes }) => {
      const from = parseTraceparent(parent);
      const context =
        from === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...remote(from), isRemote: true });
      const span = tracer.startSpan(step, { startTime: startMs, attributes: { ...attributes } }, context);
      const { traceId, spanId, traceFlags } = span.spanContext();
      const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
      return {
        traceparent: formatTraceparent({ traceId, spanId, isSampled }),
        end: (atMs) => span.end(Math.max(atMs, startMs)),
      };
    },
  };
}

function remote({ traceId, spanId, isSampled }: NonNullable<ReturnType<typeof parseTraceparent>>): SpanContext {
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE };
}

/** What is counted anyway is read when it is to be sent: there are no second counters. */
function readerOf({ settings, metrics, clock }: TelemetryOptions): PeriodicExportingMetricReader {
  const startTime = hrTime(clock.wallMs());
  const collect = async () => {
    const times = { startTime, endTime: hrTime(clock.wallMs()) };
    const seen = new Map<string, number>();
    const scopeMetrics = await Promise.all(
      metrics().map(async ({ part, metrics: own }) => {
        const count = (seen.get(part) ?? 0) + 1;
        seen.set(part, count);
        const name = `portolan/${part}${count === 1 ? '' : `-${count}`}`;
        return { scope: { name }, metrics: (await own.series()).map((one) => metricData(metricPoints(one), times)) };
      }),
    );
    return { resourceMetrics: { resource: resourceFromAttributes({}), scopeMetrics }, errors: [] };
  };
  return new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(),
    exportIntervalMillis: settings.metricIntervalMs,
    exportTimeoutMillis: Math.min(30_000, settings.metricIntervalMs),
    metricProducers: [{ collect }],
  });
}

type Times = { readonly startTime: [number, number]; readonly endTime: [number, number] };

function metricData({ name, help, unit, ...typed }: MetricPoints, times: Times): MetricData {
  const descriptor = { name, description: help, unit, valueType: 1 };
  const aggregationTemporality = AggregationTemporality.CUMULATIVE;
  const points = <T>(values: readonly { attributes: Readonly<Record<string, string | number>>; value: T }[]) =>
    values.map(({ attributes, value }) => ({ ...times, attributes: { ...attributes }, value }));
  if (typed.kind === 'histogram')
    return {
      ...{ descriptor, aggregationTemporality, dataPointType: DataPointType.HISTOGRAM },
      dataPoints: points(typed.points),
    };
  const dataPoints = points(typed.points);
  return typed.kind === 'sum'
    ? { descriptor, aggregationTemporality, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { descriptor, aggregationTemporality, dataPointType: DataPointType.GAUGE, dataPoints };
}

function hrTime(wallMs: number): [number, number] {
  return [Math.floor(wallMs / 1000), Math.round((wallMs % 1000) * 1e6)];
}
