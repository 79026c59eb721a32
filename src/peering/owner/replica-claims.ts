// Which replica may say how it stands with a peer that takes from us: the one that has its stream. Claims of another
// replica are left alone while it shows signs of life; abandoned ones are corrected by the remaining replicas.

import { formatTime } from '../../kube/objects/conditions.ts';
import { signOfLifeMsMax } from '../explain/explain.ts';
import type { PeerOwnerStatus } from '../kinds/peer.ts';
import type { ConsumerReport } from './owner.ts';

export interface ReplicaClaimsOptions {
  readonly isReplicated: boolean;
  readonly wallMs: () => number;
  /** The stream that this process has. */
  readonly report: (peer: string) => ConsumerReport | undefined;
  /** The status in the Peer, whichever replica wrote it. */
  readonly written: (peer: string) => PeerOwnerStatus | undefined;
}

export class ReplicaClaims {
  readonly #options: ReplicaClaimsOptions;
  /** When the last stream of a peer began that this process had, as it is written. */
  readonly #had = new Map<string, string>();

  constructor(options: ReplicaClaimsOptions) {
    this.#options = options;
  }

  /** Whether this process has something to say of the peer's stream, if only that it is gone. */
  mayTell(peer: string): boolean {
    const report = this.#options.report(peer);
    if (report !== undefined) this.#had.set(peer, formatTime(report.sinceMs));
    return (this.#had.has(peer) || this.#claimed(peer) !== undefined) && !this.isServedElsewhere(peer);
  }

  isServedElsewhere(peer: string): boolean {
    const { isReplicated, report, wallMs } = this.#options;
    if (!isReplicated || report(peer) !== undefined) return false;
    const heardMs = Date.parse(this.#claimed(peer)?.lastContact ?? '');
    return wallMs() - heardMs <= signOfLifeMsMax;
  }

  /** The status written for a stream that this process never had. */
  #claimed(peer: string): PeerOwnerStatus | undefined {
    const written = this.#options.written(peer);
    const isClaim = written !== undefined && written.state !== 'Idle' && written.since !== this.#had.get(peer);
    return isClaim ? written : undefined;
  }
}
