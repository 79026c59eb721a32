// The standard environment variables of OpenTelemetry, as far as the SDK leaves them to the program. Endpoints, headers, time-outs,
// compression and certificates are read by its exporters. Pure.

export interface TelemetrySettings {
  readonly sendsTraces: boolean;
  readonly sendsMetrics: boolean;
  readonly sampler: { readonly kind: 'on' | 'off' | 'ratio'; readonly ratio: number; readonly isParentBased: boolean };
  readonly metricIntervalMs: number;
  readonly spanDelayMs: number;
  /** Values that are not understood, each with what is done instead. */
  readonly problems: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

const protocol = 'http/protobuf';
const samplers = /^(parentbased_)?(always_on|always_off|traceidratio)$/;

/** Undefined where nothing is to be sent. */
export function telemetrySettings(environment: Environment): TelemetrySettings | undefined {
  const value = (name: string) => environment[name]?.trim() ?? '';
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true') return undefined;
  const problems: string[] = [];
  const sends = (signal: 'TRACES' | 'METRICS') => {
    const endpoint = value(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`) || value('OTEL_EXPORTER_OTLP_ENDPOINT');
    const exporter = value(`OTEL_${signal}_EXPORTER`) || 'otlp';
    const spoken = value(`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`) || value('OTEL_EXPORTER_OTLP_PROTOCOL') || protocol;
    if (endpoint === '' || exporter === 'none') return false;
    if (!URL.canParse(endpoint)) problems.push(`OTLP endpoint ${JSON.stringify(endpoint)} is no URL: nothing is sent`);
    if (exporter !== 'otlp')
      problems.push(`OTEL_${signal}_EXPORTER=${exporter} is not known, otlp and none are: nothing is sent`);
    if (spoken !== protocol) problems.push(`OTLP protocol ${spoken} is not spoken, ${protocol} is: nothing is sent`);
    return URL.canParse(endpoint) && exporter === 'otlp' && spoken === protocol;
  };
  const count = (name: string, otherwise: number) => {
    const text = value(name);
    const found = Number(text || otherwise);
    if (Number.isInteger(found) && found > 0 && found < 2 ** 31) return found;
    problems.push(`${name}=${text} is no number of milliseconds: ${otherwise} is used`);
    return otherwise;
  };
  const settings = {
    ...{ sendsTraces: sends('TRACES'), sendsMetrics: sends('METRICS') },
    sampler: samplerOf(value('OTEL_TRACES_SAMPLER'), value('OTEL_TRACES_SAMPLER_ARG'), problems),
    metricIntervalMs: count('OTEL_METRIC_EXPORT_INTERVAL', 60_000),
    spanDelayMs: count('OTEL_BSP_SCHEDULE_DELAY', 5_000),
  };
  const isAsked = settings.sendsTraces || settings.sendsMetrics || problems.some((text) => text.endsWith('is sent'));
  return isAsked ? { ...settings, problems: [...new Set(problems)] } : undefined;
}

function samplerOf(name: string, argument: string, problems: string[]): TelemetrySettings['sampler'] {
  const all = { kind: 'on', ratio: 1, isParentBased: true } as const;
  if (name === '') return all;
  const [, parent, kind] = samplers.exec(name) ?? [];
  const ratio = Number(argument || '1');
  const isRatio = ratio >= 0 && ratio <= 1;
  if (kind === undefined || !isRatio) {
    problems.push(`OTEL_TRACES_SAMPLER=${name} ${argument} is not understood: all traces are sampled`);
    return all;
  }
  const kinds = { always_on: 'on', always_off: 'off', traceidratio: 'ratio' } as const;
  return { kind: kinds[kind as keyof typeof kinds], ratio, isParentBased: parent !== undefined };
}
