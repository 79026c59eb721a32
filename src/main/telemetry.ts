// OpenTelemetry of a role's process: whether it is asked for by the standard variables, as what the process reports, and its end.
// The SDK is loaded only then.

import type { Log } from '../base/log.ts';
import { metricsOfProcess } from '../base/real/process-metrics.ts';
import type { Telemetry } from '../base/telemetry/edge/open-telemetry.ts';
import { telemetrySettings } from '../base/telemetry/settings.ts';
import { version } from '../base/version.ts';
import { sleep, type World } from '../base/world.ts';

const endings = new Set<() => Promise<void>>();
/** A receiver that is away does not hold up the end. */
const lastWordsMs = 2_000;

/** The world of a role, with tracing where a receiver is named. */
export async function withTelemetry(role: string, world: World, log: Log): Promise<World> {
  const settings = telemetrySettings(process.env);
  if (settings === undefined) return world;
  for (const problem of settings.problems) log.warn('OpenTelemetry', { problem });
  if (!settings.sendsTraces && !settings.sendsMetrics) return world;
  const { startOpenTelemetry } = await import('../base/telemetry/edge/open-telemetry.ts');
  const telemetry = startOpenTelemetry({
    ...{ settings, log, version, clock: world.clock, metrics: metricsOfProcess },
    resource: {
      'service.name': `portolan-${role}`,
      'service.version': version,
      'service.instance.id': world.random.uuid(),
      'process.pid': process.pid,
    },
  });
  endings.add(() => within(world, telemetry));
  return { ...world, ...(telemetry.tracing === undefined ? {} : { tracing: telemetry.tracing }) };
}

/** Sends what is left, at the end of the process. */
export async function stopTelemetry(): Promise<void> {
  await Promise.all(Array.from(endings, (end) => end()));
  endings.clear();
}

async function within({ timers }: World, telemetry: Telemetry): Promise<void> {
  const enough = new AbortController();
  const patience = sleep(timers, lastWordsMs, enough.signal).catch(() => {});
  await Promise.race([telemetry.stop(), patience]);
  enough.abort();
}
