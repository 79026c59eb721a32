// The step of a trace at which a new import is answered by name.

import { beginStep } from '../../base/telemetry/steps.ts';
import type { World } from '../../base/world.ts';
import type { Catalog } from '../../catalog/catalog.ts';

export function traceAnswers({ clock, tracing }: Pick<World, 'clock' | 'tracing'>, catalog: Catalog): void {
  if (tracing === undefined) return;
  catalog.onChange((changes) => {
    for (const { traceparent, sinceMs, namespace, service: name } of changes) {
      if (traceparent === undefined) continue;
      const [nowMs, tookMs] = [clock.wallMs(), clock.monotonicMs() - sinceMs];
      const where = { cluster: catalog.cluster.id, service: { namespace, name } };
      beginStep(tracing, 'answer', { ...where, parent: traceparent, startMs: nowMs - tookMs }).end(nowMs);
    }
  });
}
