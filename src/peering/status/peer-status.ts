// The status of Peers and PeerExports, from the reports of owner and consumer. Pure.

import { formatTime } from '../../kube/objects/conditions.ts';
import type { LinkReport } from '../consumer/consumer-link.ts';
import type { PeerConsumerStatus, PeerOwnerStatus, PeerState } from '../kinds/peer.ts';
import { refusalsShownMax } from '../kinds/peer.ts';
import type { PeerExport, PeerExportStatus } from '../kinds/peer-export.ts';
import type { ConsumerReport } from '../owner/owner.ts';
import type { Share } from '../owner/owner-catalog.ts';
import type { RefusedCall } from '../owner/refused-callers.ts';
import { cutText } from '../rules/reason.ts';

export function consumerStatus(report: LinkReport, nowMs: number): PeerConsumerStatus {
  const { state, aliveMs, fullSyncMs, mode, refusals } = report;
  return {
    state: consumerState(report),
    message: 'reason' in state ? state.reason.slice(0, 4096) : '',
    version: report.version,
    services: report.services,
    refused: refusals.size,
    unacknowledged: report.unacknowledged,
    lag: report.unacknowledged,
    // While the owner is away or refuses us we fall behind it, by an amount known only as time.
    lagSeconds: Math.max(secondsSince(report.behindSinceMs, nowMs), Math.floor(report.awayMs / 1000)),
    suspects: report.suspects,
    keepAliveSeconds: Math.round(report.keepAliveMs / 1000),
    ...(mode === undefined ? {} : { reconciliation: mode === 'exact' ? 'Marker' : 'Quiescence' }),
    awaySeconds: Math.floor(report.awayMs / 1000),
    ...(aliveMs === undefined ? {} : { lastContact: formatTime(aliveMs) }),
    ...(fullSyncMs === undefined ? {} : { lastFullSync: formatTime(fullSyncMs) }),
    refusals: refusals.newest(),
  };
}

function consumerState({ state, staleSinceMs, fullSyncMs, services }: LinkReport): PeerState {
  if (state.kind === 'stopped' || state.kind === 'misconfigured') return 'Refused';
  if (state.kind === 'suspended') return 'Idle';
  if (state.kind === 'dialing' || state.kind === 'backingOff')
    return staleSinceMs === undefined || services === 0 ? 'Connecting' : 'Stale';
  return state.kind === 'waiting' || (fullSyncMs !== undefined && staleSinceMs === undefined) ? 'Synced' : 'Syncing';
}

export interface Absent {
  /** The last refused call in its name, since it was last served. */
  readonly refused?: RefusedCall | undefined;
  /** The local problem with it. */
  readonly why?: string;
}

/** `report` is absent when the peer is not connected. */
export function ownerStatus(
  report: ConsumerReport | undefined,
  services: number,
  nowMs: number,
  { refused, why = '' }: Absent = {},
): PeerOwnerStatus {
  if (report === undefined) {
    const state = refused === undefined ? 'Idle' : 'Refused';
    const message = refused === undefined ? why : refusedMessage(refused);
    return { state, message, services, unacknowledged: 0, lag: 0, lagSeconds: 0 };
  }
  const { refusals, fullSyncMs } = report;
  const newest = [...refusals.values()].slice(-refusalsShownMax).reverse();
  return {
    state: ownerState(report, services),
    message: ownerMessage(report, services) || why,
    version: report.version,
    identity: report.identity,
    since: formatTime(report.sinceMs),
    services,
    refused: refusals.size,
    unacknowledged: report.unacknowledged,
    lag: report.lag,
    lagSeconds: secondsSince(report.behindSinceMs, nowMs),
    lastContact: formatTime(report.aliveMs),
    ...(fullSyncMs === undefined ? {} : { lastFullSync: formatTime(fullSyncMs) }),
    refusals: newest.map(({ id, reason }) => ({ id, reason: reason.slice(0, 4096) })),
    notes: [...report.notes]
      .slice(-refusalsShownMax)
      .reverse()
      .map(([id, note]) => ({ id, note })),
  };
}

function refusedMessage({ reason, count, lastMs }: RefusedCall): string {
  const times = count === 1 ? '' : `, ${count} times`;
  return `refused as Unauthenticated${times}, last at ${formatTime(lastMs)}: ${reason}`;
}

// A peer that accepted nothing is not in step with us, however promptly it answered.
function ownerState({ state, snapshotRefused, refusals }: ConsumerReport, services: number): PeerState {
  if (state !== 'waiting' || snapshotRefused !== '') return 'Syncing';
  return services > 0 && refusals.size >= services ? 'Refused' : 'Synced';
}

function ownerMessage({ snapshotRefused, refusals }: ConsumerReport, services: number): string {
  if (snapshotRefused !== '')
    return `the peer does not believe that its catalog is complete, and takes deletions by quiescence and grace: ${snapshotRefused}`;
  return refusals.size === 0 ? '' : `the peer refused ${refusals.size} of ${services} services`;
}

export interface ExportFindings {
  readonly peerExport: PeerExport;
  readonly shares: Iterable<Share>;
  readonly report: (peer: string) => ConsumerReport | undefined;
  readonly offered: (peer: string, id: string) => Share | undefined;
  readonly isKnown: (peer: string) => boolean;
  /** Another replica serves it, and writes how it stands with it. */
  readonly isServedElsewhere: (peer: string) => boolean;
  /** Why no peer can connect to its services; empty if that is not so. */
  readonly ingressProblem: string;
}

const reasonsShownMax = 10;
/** Ten of them fit into a status with room to spare. */
const lineLengthMax = 1500;

export function exportStatus(findings: ExportFindings): Pick<PeerExportStatus, 'services' | 'peers' | 'shared'> & {
  readonly wrong: string[];
  readonly reason: ExportReason;
} {
  const shares = [...findings.shares];
  const wrong = shares.filter((share) => share.wrong !== '').map(({ service, wrong }) => `${service.name}: ${wrong}`);
  const peers = findings.peerExport.spec.peers.map((peer) => exportStatusAt(peer, shares, findings));
  const unknown = findings.peerExport.spec.peers.filter((peer) => !findings.isKnown(peer));
  const [reason, reasons] = whyNotOffered(wrong, unknown, shares.length, findings.ingressProblem);
  const shared = sharedText(peers);
  return { services: shares.length, peers, shared, reason, wrong: reasons.slice(0, reasonsShownMax).map(cutLine) };
}

/** `acme Acknowledged, globex Pending`. */
function sharedText(peers: NonNullable<PeerExportStatus['peers']>): string {
  const shown = peers.slice(0, reasonsShownMax).map(({ peer, state }) => `${peer} ${state}`);
  return [...shown, ...(peers.length > shown.length ? [`${peers.length - shown.length} more`] : [])].join(', ');
}

export type ExportReason = 'Offered' | 'IngressAway' | 'Invalid' | 'UnknownPeer' | 'NothingSelected';

function whyNotOffered(
  wrong: readonly string[],
  unknown: readonly string[],
  count: number,
  ingressProblem: string,
): [ExportReason, readonly string[]] {
  if (wrong.length > 0) return ['Invalid', wrong];
  if (unknown.length > 0) return ['UnknownPeer', unknown.map((peer) => `there is no Peer ${peer}`)];
  if (count === 0) return ['NothingSelected', ['it selects no Service of its namespace']];
  return ingressProblem === '' ? ['Offered', []] : ['IngressAway', [ingressProblem]];
}

function exportStatusAt(peer: string, shares: readonly Share[], findings: ExportFindings) {
  if (!findings.isKnown(peer)) return { peer, state: 'Pending' as const, message: `there is no Peer ${peer}` };
  const written = findings.peerExport.status?.peers?.find((one) => one.peer === peer);
  if (written !== undefined && findings.isServedElsewhere(peer)) return written;
  const reasons: string[] = [];
  for (const share of shares) {
    const holder = findings.offered(peer, share.service.id);
    if (share.wrong === '' && holder !== undefined && holder.exportKey !== share.exportKey)
      reasons.push(`${share.service.id}: already offered by PeerExport ${holder.exportKey}, which is older`);
  }
  const report = findings.report(peer);
  for (const { service } of report === undefined ? [] : shares) {
    const refusal = report?.refusals.get(service.id);
    if (refusal !== undefined) reasons.push(`${service.id}: ${refusal.reason}`);
  }
  if (reasons.length > 0) return { peer, state: 'Refused' as const, message: shorten(reasons) };
  if (shares.length === 0)
    return { peer, state: 'Pending' as const, message: 'nothing to share: it selects no Service' };
  if (report === undefined) return { peer, state: 'Pending' as const, message: 'the peer is not connected' };
  const pending = shares.filter(({ service, wrong }) => wrong === '' && report.isPending(service.id)).length;
  if (pending > 0) return { peer, state: 'Pending' as const, message: `${pending} services not acknowledged yet` };
  const notes = shares.flatMap(({ service, wrong }) => {
    const note = wrong === '' ? report.notes.get(service.id) : undefined;
    return note === undefined ? [] : [`${service.id}: ${note}`];
  });
  return { peer, state: 'Acknowledged' as const, ...(notes.length === 0 ? {} : { message: shorten(notes) }) };
}

function shorten(lines: readonly string[]): string {
  const more = lines.length > reasonsShownMax ? `; and ${lines.length - reasonsShownMax} more` : '';
  return lines.slice(0, reasonsShownMax).map(cutLine).join('; ') + more;
}

function cutLine(line: string): string {
  return cutText(line, lineLengthMax);
}

function secondsSince(sinceMs: number | undefined, nowMs: number): number {
  return sinceMs === undefined ? 0 : Math.max(0, Math.floor((nowMs - sinceMs) / 1000));
}
