import { expect, test } from 'vitest';
import { telemetrySettings } from './settings.ts';

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
const sent = (environment: Record<string, string>) => {
  const settings = telemetrySettings(environment);
  return settings && `${settings.sendsTraces} ${settings.sendsMetrics} ${settings.problems.join('; ')}`.trim();
};

test.each([
  [{}, undefined],
  [{ OTEL_SERVICE_NAME: 'x' }, undefined],
  [endpoint, 'true true'],
  [{ ...endpoint, OTEL_SDK_DISABLED: 'true' }, undefined],
  [{ ...endpoint, OTEL_METRICS_EXPORTER: 'none' }, 'true false'],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://127.0.0.1:4318/v1/metrics' }, 'false true'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' }, 'false false OTLP endpoint "collector" is no URL: nothing is sent'],
  [
    { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    'false false OTLP protocol grpc is not spoken, http/protobuf is: nothing is sent',
  ],
  [
    { ...endpoint, OTEL_METRIC_EXPORT_INTERVAL: 'soon' },
    'true true OTEL_METRIC_EXPORT_INTERVAL=soon is no number of milliseconds: 60000 is used',
  ],
])('telemetry settings: %j -> %s', (environment, expected) => {
  expect(sent(environment)).toBe(expected);
});

test.each([
  ['', '', 'on 1 true'],
  ['always_off', '', 'off 1 false'],
  ['parentbased_traceidratio', '0.25', 'ratio 0.25 true'],
  ['traceidratio', '7', 'on 1 true'],
  ['jaeger_remote', '', 'on 1 true'],
])('telemetry settings: sampler %s %s -> %s', (name, argument, expected) => {
  const { sampler } = telemetrySettings({
    ...endpoint,
    OTEL_TRACES_SAMPLER: name,
    OTEL_TRACES_SAMPLER_ARG: argument,
  })!;
  expect(`${sampler.kind} ${sampler.ratio} ${sampler.isParentBased}`).toBe(expected);
});
