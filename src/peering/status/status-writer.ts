// Writes what is known of Peers and PeerExports to their status, a little after it changed and once in a while, so that
// a burst of changes is one write and a sign of life is never old.

import { isSameJson } from '../../base/json.ts';
import { errorText, type Log } from '../../base/log.ts';
import { Queue } from '../../base/queue.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { isConflict, isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime, type WantedCondition, withConditions } from '../../kube/objects/conditions.ts';
import { type Peer, type PeerConsumerStatus, type PeerOwnerStatus, peerType } from '../kinds/peer.ts';
import { type PeerExport, peerExportType } from '../kinds/peer-export.ts';
import { type ExportFindings, exportStatus } from './peer-status.ts';

export interface StatusWriterOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly namespace: string;
  /** Only the sides that this process knows of. Undefined if there is no such peer. */
  readonly peerStatus: (peer: string) => WrittenStatus | undefined;
  /** The Peer as the home has it. */
  readonly peer: (peer: string) => Peer | undefined;
  readonly exportsTo: (peer: string) => Iterable<string>;
  readonly exportFindings: (exportKey: string) => ExportFindings | undefined;
}

/** As a merge patch: null takes a side away. */
export interface WrittenStatus {
  readonly owner?: PeerOwnerStatus;
  readonly consumer?: PeerConsumerStatus | null;
  /** Beside those of other writers. */
  readonly conditions?: readonly WantedCondition[];
}

const settleMs = 300;
/** Looking at an export costs as much as it selects. */
const exportSettleMs = 1000;
const signOfLifeMs = 30_000;

export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #queue: Queue;
  readonly #written = new Map<string, WrittenStatus>();

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#queue = new Queue({
      name: 'peering-status',
      world: options.world,
      concurrency: 4,
      work: (key) => this.#write(key),
      onFailure: ({ key, error }) => options.log.warn('status not written', { key, error: errorText(error) }),
    });
    this.#queue.start();
  }

  peerChanged(peer: string): void {
    this.#queue.addAfter(`peer ${peer}`, settleMs);
  }

  exportChanged(exportKey: string): void {
    this.#queue.addAfter(`export ${exportKey}`, exportSettleMs);
  }

  stop(): Promise<void> {
    return this.#queue.stop();
  }

  async #write(key: string): Promise<{ requeueAfterMs: number } | undefined> {
    const space = key.indexOf(' ');
    const name = key.slice(space + 1);
    return key.startsWith('peer ') ? this.#writePeer(name) : this.#writeExport(name);
  }

  async #writePeer(peer: string): Promise<{ requeueAfterMs: number } | undefined> {
    const status = this.#options.peerStatus(peer);
    if (status === undefined) {
      this.#written.delete(peer);
      return undefined;
    }
    if (!isSameJson(status, this.#written.get(peer))) {
      const { conditions = [], ...sides } = status;
      const news = this.#newConditions(peer, conditions);
      const ref = { namespace: this.#options.namespace, name: peer };
      try {
        await this.#patch(peerType, ref, { ...sides, ...news?.status }, news?.metadata);
      } catch (error) {
        // Somebody else wrote conditions, or our copy is a moment behind.
        if (news !== undefined && isConflict(error)) return { requeueAfterMs: exportSettleMs };
        throw error;
      }
    }
    if (!isSameJson(status.owner, this.#written.get(peer)?.owner))
      for (const key of this.#options.exportsTo(peer)) this.exportChanged(key);
    this.#written.set(peer, status);
    return { requeueAfterMs: signOfLifeMs };
  }

  /** A merge patch replaces the whole list: it must be the one that was read. */
  #newConditions(name: string, wanted: readonly WantedCondition[]) {
    const peer = this.#options.peer(name);
    if (peer === undefined || wanted.length === 0) return undefined;
    const { generation: observedGeneration, resourceVersion } = peer.metadata;
    const now = formatTime(this.#options.world.clock.wallMs());
    const conditions = withConditions(peer.status?.conditions, wanted, { now, observedGeneration });
    if (conditions === peer.status?.conditions) return undefined;
    return { metadata: { resourceVersion }, status: { conditions } };
  }

  async #writeExport(key: string): Promise<undefined> {
    const findings = this.#options.exportFindings(key);
    if (findings === undefined) return;
    const { wrong, reason, ...found } = exportStatus(findings);
    const { metadata, status: present } = findings.peerExport;
    const isReady = wrong.length === 0;
    const condition = {
      type: 'Ready',
      status: isReady ? 'True' : 'False',
      reason,
      message: isReady ? 'every service it selects can be offered' : wrong.join('; '),
    } as const;
    const now = formatTime(this.#options.world.clock.wallMs());
    const stamp = { now, observedGeneration: metadata.generation };
    const conditions = [...withConditions(present?.conditions, [condition], stamp)];
    const status = { ...found, observedGeneration: metadata.generation, conditions };
    if (isSameJson(status, present)) return;
    await this.#patch(peerExportType, metadata as PeerExport['metadata'], status);
  }

  async #patch(
    type: typeof peerType,
    ref: { namespace?: string; name: string },
    status: object,
    metadata?: object,
  ): Promise<void> {
    try {
      const { namespace, name } = ref;
      const patch = { kind: 'merge' as const, body: { ...(metadata && { metadata }), status } };
      await this.#options.client.patch(type, { namespace, name }, patch, { subresource: 'status' });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
