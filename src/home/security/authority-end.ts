// Warns before the home's certificate authority ends: in the log once a day, in health, and as a metric. The serving
// certificate renews itself and has the metric alone.

import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { repeat } from '../../base/repeat.ts';
import type { World } from '../../base/world.ts';
import { certificateFacts } from '../../base/x509/certificates.ts';
import type { AuthorityFacts } from '../model/access.ts';
import type { Pki } from './pki.ts';

const dayMs = 24 * 60 * 60 * 1000;
/** People need time: every member and every kubeconfig has to follow. */
const warnMs = 90 * dayMs;

export interface AuthorityWatchOptions {
  readonly pki: Pick<Pki, 'clientCa' | 'authorityEndsMs' | 'serverCredentials' | 'onRenewed'>;
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function watchAuthority({ pki, world, log, metrics }: AuthorityWatchOptions): AuthorityFacts & { stop(): void } {
  metrics.certificateEnd('home-authority', () => pki.authorityEndsMs());
  metrics.certificateEnd('home-serving', () => certificateFacts(pki.serverCredentials().certificate).notAfterMs);
  const warning = () => {
    const endsMs = pki.authorityEndsMs();
    if (endsMs - world.clock.wallMs() > warnMs) return undefined;
    const date = new Date(endsMs).toISOString().slice(0, 10);
    return `the certificate authority of this home ends on ${date}; replace it with portolan api rotate-ca`;
  };
  const look = () => {
    const text = warning();
    if (text !== undefined) log.warn(text);
  };
  look();
  const stop = repeat(world.timers, { everyMs: dayMs }, look);
  const onChanged = (listener: () => void) => pki.onRenewed(() => listener());
  return { certificates: () => pki.clientCa, onChanged, warning, stop };
}
