// A receiver of OpenTelemetry's protocol over HTTP, with the messages of opentelemetry-proto 1.x that are sent here, by their field
// numbers. Knows nothing of the SDK that sends.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';

const { root } = protobuf.parse(
  `syntax = "proto3";
  message AnyValue { oneof value { string text = 1; bool flag = 2; int64 whole = 3; double real = 4; } }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message Scope { string name = 1; string version = 2; }
  message Span { bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; fixed64 start = 7;
    fixed64 end = 8; repeated KeyValue attributes = 9; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Traces { repeated ResourceSpans resource_spans = 1; }
  message Number { fixed64 start = 2; fixed64 at = 3; double real = 4; sfixed64 whole = 6; repeated KeyValue attributes = 7; }
  message Histogram { repeated KeyValue attributes = 9; fixed64 count = 4; double sum = 5; repeated fixed64 counts = 6;
    repeated double bounds = 7; }
  message Gauge { repeated Number points = 1; }
  message Sum { repeated Number points = 1; int32 temporality = 2; bool is_monotonic = 3; }
  message Histograms { repeated Histogram points = 1; int32 temporality = 2; }
  message Metric { string name = 1; string description = 2; string unit = 3;
    oneof data { Gauge gauge = 5; Sum sum = 7; Histograms histogram = 9; } }
  message ScopeMetrics { Scope scope = 1; repeated Metric metrics = 2; }
  message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
  message Metrics { repeated ResourceMetrics resource_metrics = 1; }`,
  { keepCase: true },
);

type Pairs = readonly { key: string; value: Record<string, string | number | boolean> }[];

export interface ReceivedSpan {
  /** From the resource. */
  readonly service: string;
  readonly instance: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Record<string, unknown>;
}

export interface ReceivedMetric {
  readonly service: string;
  readonly scope: string;
  readonly name: string;
  readonly unit: string;
  readonly kind: 'gauge' | 'sum' | 'histogram';
  /** Number of points, or of those of histograms. */
  readonly values: readonly number[];
}

export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  /** Of each series, the last. */
  readonly metrics = new Map<string, ReceivedMetric>();
  /** Headers of the last request. */
  headers: NodeJS.Dict<string | string[]> = {};
  url = '';
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      this.headers = request.headers;
      const isZipped = request.headers['content-encoding'] === 'gzip';
      const body = isZipped ? gunzipSync(Buffer.concat(chunks)) : Buffer.concat(chunks);
      const isKnown = request.headers['content-type'] === 'application/x-protobuf' && request.method === 'POST';
      if (isKnown && request.url === '/v1/traces') this.#readTraces(body);
      else if (isKnown && request.url === '/v1/metrics') this.#readMetrics(body);
      else response.statusCode = 404;
      response.setHeader('content-type', 'application/x-protobuf').end();
    });
  });

  async start(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #readTraces(body: Uint8Array): void {
    for (const { resource, scope_spans } of decode('Traces', body).resource_spans)
      for (const { spans } of scope_spans)
        for (const { trace_id, span_id, parent_span_id, name, start, end, attributes } of spans)
          this.spans.push({
            ...{ name, traceId: hex(trace_id), spanId: hex(span_id), parentId: hex(parent_span_id) },
            ...{ startMs: Number(start) / 1e6, endMs: Number(end) / 1e6, attributes: read(attributes) },
            ...{ service: `${read(resource.attributes)['service.name']}` },
            instance: `${read(resource.attributes)['service.instance.id']}`,
          });
  }

  #readMetrics(body: Uint8Array): void {
    for (const { resource, scope_metrics } of decode('Metrics', body).resource_metrics)
      for (const { scope, metrics } of scope_metrics)
        for (const { name, unit, gauge, sum, histogram } of metrics) {
          const service = `${read(resource.attributes)['service.name']}`;
          const kind = gauge ? 'gauge' : sum ? 'sum' : 'histogram';
          const points = (gauge ?? sum ?? histogram).points as { real?: number; whole?: string; count?: string }[];
          const values = points.map(({ real, whole, count }) => Number(count ?? real ?? whole));
          this.metrics.set(`${service} ${scope.name} ${name}`, {
            service,
            scope: scope.name,
            name,
            unit,
            kind,
            values,
          });
        }
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the shape is that of the messages above
function decode(type: string, body: Uint8Array): any {
  const message = root.lookupType(type);
  return message.toObject(message.decode(body), { longs: String, arrays: true });
}

function read(pairs: Pairs = []): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]));
}

function hex(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('hex');
}
