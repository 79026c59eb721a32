// Checks of the home itself: reachable, writable, readable, its clock, certificates and versions. Pure.

import { formatElapsed, formatMoment } from '../../base/text/elapsed.ts';
import { certificateFacts } from '../../base/x509/certificates.ts';
import { splitPem } from '../../peering/kinds/peer.ts';
import type { Checks, Found } from '../diagnosis.ts';
import { type CertificateFacts, type ClusterFacts, need } from '../facts.ts';

const clockOffMsMax = 5_000;
/** A certificate should have been renewed before this share of its life is left. */
const lifeLeftMin = 0.1;

/** How a line of a home's health begins that warns of its snapshots. */
const snapshotWarning = '[!]snapshots:';

export const homeChecks: Checks = {
  PTL0101: ({ health, server }) => {
    if ('why' in health) return [{ subject: server, message: health.why }];
    const { status, text } = health.value;
    if (status < 400 || isDiskProblem(text) || status === 401 || status === 403) return [];
    return [{ subject: server, message: `it is not ready: ${firstFailure(text)}` }];
  },
  PTL0102: ({ health, server }) => {
    const { status, text } = need(health);
    return status >= 400 && isDiskProblem(text) ? [{ subject: server, message: firstFailure(text) }] : [];
  },
  PTL0103: ({ forbidden, server }) =>
    forbidden.map((what) => ({ subject: server, message: `you may not read ${what}` })),
  PTL0104: ({ health, server }) =>
    need(health)
      .text.split('\n')
      .filter((line) => line.startsWith(snapshotWarning))
      .map((line) => ({ subject: server, message: line.slice(snapshotWarning.length, 300).trim() })),
  PTL0105: ({ parts }) =>
    need(parts)
      .filter(({ state, missingRights }) => state === 'reporting' && missingRights.length > 0)
      .map(({ part, node, missingRights }) => ({
        subject: `${part} on ${node}`,
        message: `its account may not ${missingRights.join(', ')}`,
      })),
  PTL0701: (facts) => [...homeClock(facts), ...reporterClocks(facts)],
  PTL0702: (facts) => certificates(facts, ({ endMs }, nowMs) => endMs <= nowMs, 'expired'),
  PTL0703: (facts) =>
    certificates(
      facts,
      ({ startMs, endMs }, nowMs) => endMs > nowMs && endMs - nowMs < lifeLeftMin * (endMs - startMs),
      'ends',
    ),
  PTL0801: ({ parts, ownVersion }) =>
    need(parts)
      .filter(({ version }) => version !== ownVersion)
      .map(({ part, node, version }) => ({
        subject: `${part} on ${node}`,
        message: `it runs ${version || 'an unknown version'}, this program is ${ownVersion}`,
      })),
};

function homeClock({ health, server }: ClusterFacts): Found[] {
  const { clockOffMs } = need(health);
  if (clockOffMs === undefined || Math.abs(clockOffMs) <= clockOffMsMax) return [];
  const direction = clockOffMs > 0 ? 'ahead of' : 'behind';
  return [
    { subject: server, message: `its clock is ${formatElapsed(Math.abs(clockOffMs))} ${direction} this machine's` },
  ];
}

/** Parts and agents whose reports lie in the future: they would be called alive for so long. One that is behind is silent. */
function reporterClocks({ health, parts, broker }: ClusterFacts): Found[] {
  const set = 'value' in broker && broker.value.kind === 'answers' ? broker.value.set : undefined;
  const reporters = [
    ...('value' in parts ? parts.value : []).map(({ part, node, aheadMs }) => ({
      subject: `${part} on ${node}`,
      aheadMs,
    })),
    ...(set?.state.members ?? []).map(({ id, lease, leaseReadMs }) => ({
      subject: `agent of cluster ${id}`,
      aheadMs: Date.parse(lease?.spec?.renewTime ?? '') - leaseReadMs,
    })),
  ];
  // Where the home agrees with them, this machine's clock is behind, which is told of the home.
  const homeAheadMs = Math.max(0, need(health).clockOffMs ?? 0);
  return reporters.flatMap(({ subject, aheadMs = 0 }) =>
    aheadMs - homeAheadMs > clockOffMsMax
      ? [{ subject, message: `its clock is ${formatElapsed(aheadMs)} ahead of this machine's, by its last report` }]
      : [],
  );
}

function isDiskProblem(text: string): boolean {
  return /\[-\]store failed/.test(text);
}

function firstFailure(text: string): string {
  const line = text.split('\n').find((one) => one.startsWith('[-]')) ?? text.split('\n')[0] ?? '';
  return line.slice(0, 300).trim();
}

interface Life {
  readonly startMs: number;
  readonly endMs: number;
}

function certificates(
  { certificates: all, nowMs }: ClusterFacts,
  isMeant: (life: Life, nowMs: number) => boolean,
  verb: string,
): Found[] {
  return need(all).flatMap((one) =>
    livesOf(one).flatMap((life) =>
      isMeant(life, nowMs) ? [{ subject: one.subject, message: `it ${verb} ${formatMoment(life.endMs, nowMs)}` }] : [],
    ),
  );
}

function livesOf(certificate: CertificateFacts): Life[] {
  if (!('pem' in certificate)) return [certificate];
  return splitPem(certificate.pem).map((text) => {
    const { notBeforeMs, notAfterMs } = certificateFacts(text);
    return { startMs: notBeforeMs, endMs: notAfterMs };
  });
}
