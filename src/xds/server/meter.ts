// The metrics of the discovery server.

import type { Metrics } from '../../base/metrics.ts';
import type { Clock } from '../../base/world.ts';
import type { XdsType } from '../resource.ts';
import type { Proxies } from './proxies.ts';

type TurnedAway = 'flood' | 'malformed' | 'node' | 'certificate';

export interface XdsMeter {
  sent(type: XdsType, bytes: number): void;
  refused(type: XdsType): void;
  stale(): void;
  turnedAway(why: TurnedAway): void;
}

export function measureXds(metrics: Metrics, proxies: Proxies, clock: Clock): XdsMeter {
  metrics.gauge({
    name: 'xds_proxies',
    help: 'Proxies with an open stream.',
    collect: (gauge) => gauge.set(proxies.connected),
  });
  metrics.gauge({
    name: 'xds_refused_resources',
    help: 'Resources that a connected proxy with a certificate refused and holds at an older version.',
    collect: (gauge) =>
      gauge.set(proxies.refusing(clock.monotonicMs()).reduce((sum, { refused }) => sum + refused.length, 0)),
  });
  metrics.certificateEnd('xds-proxy', () => proxies.firstEndMs());
  metrics.gauge({
    name: 'xds_proxy_certificates_due',
    help: 'Connected proxies whose certificate should have been renewed.',
    collect: (gauge) => gauge.set(proxies.ending(clock.wallMs()).length),
  });
  const labelled = (name: string, help: string, label: string) => metrics.counter({ name, help, labelNames: [label] });
  const responses = labelled('xds_responses_total', 'Responses sent, by type of resource.', 'type');
  const bytes = labelled('xds_response_bytes_total', 'Bytes of responses, by type of resource.', 'type');
  const refusals = labelled('xds_refusals_total', 'Versions that a proxy refused, by type of resource.', 'type');
  const turnedAway = labelled('xds_turned_away_total', 'Streams that were refused or ended, by reason.', 'reason');
  const stale = metrics.counter({ name: 'xds_stale_nonces_total', help: 'Answers to nothing that is in flight.' });
  return {
    sent: (type, count) => {
      responses.inc({ type });
      bytes.inc({ type }, count);
    },
    refused: (type) => refusals.inc({ type }),
    stale: () => stale.inc(),
    turnedAway: (reason) => turnedAway.inc({ reason }),
  };
}
