// The keys with which this cluster seals: one for each audience, in a key record at the broker that its readers open. Makes,
// extends and replaces them, each audience by itself.

import { inParallel } from '../../../base/in-parallel.ts';
import type { Hpke } from '../../../base/keys/hpke.ts';
import type { Log } from '../../../base/log.ts';
import type { World } from '../../../base/world.ts';
import { deleteIfPresent } from '../../../kube/client/absent.ts';
import { apply, replaceWith } from '../../../kube/client/apply.ts';
import type { Client } from '../../../kube/client/client.ts';
import { apiVersionOf } from '../../../kube/objects/object.ts';
import type { OwnKeys } from '../../copies/sealing-keys.ts';
import { type SealedReader, type SealedRecord, sealedRecordType } from '../../kinds/sealed-record.ts';
import type { SealedCopy } from '../../members/sealed-copy.ts';
import { type AudienceKey, type KeyStep, keyInfo, planKey } from '../../rules/sealing/key-record.ts';
import { contentKeyBytes } from '../../rules/sealing/sealed-content.ts';

export interface AudienceKeysOptions {
  readonly world: Pick<World, 'clock' | 'random'>;
  readonly log: Log;
  readonly hpke: Hpke;
  readonly broker: Client;
  readonly sealed: SealedCopy;
  readonly clusterset: string;
  readonly clusterId: string;
  /** This member's own namespace at the broker. */
  readonly namespace: string;
  readonly rotation: () => { readonly rotateSeconds: number; readonly rotateBefore: number };
}

export interface Audience {
  readonly id: string;
  readonly own: OwnKeys;
  /** Public keys and fingerprints of those who may read, this cluster included. */
  readonly readers: ReadonlyMap<string, { readonly publicKey: Uint8Array; readonly fingerprint: string }>;
}

interface Written {
  readonly record: SealedRecord;
  readonly key: AudienceKey;
  readonly atMs: number;
}

/** So long a copy may not show what we wrote. */
const copyBehindMs = 5_000;
/** Readers sealed for at a time. */
const seals = { atOnceMax: 8 };

export class AudienceKeys {
  readonly #options: AudienceKeysOptions;
  /** As we wrote them: the copy may not have them yet. */
  readonly #written = new Map<string, Written>();
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Fingerprints of keys that nothing can be sealed for: they are no keys. */
  readonly #unusable = new Set<string>();

  constructor(options: AudienceKeysOptions) {
    this.#options = options;
  }

  /** The key to seal with now, which all readers have been given. */
  ensure(audience: Audience): Promise<AudienceKey> {
    const before = this.#turns.get(audience.id) ?? Promise.resolve();
    const turn = before.then(
      () => this.#bring(audience),
      () => this.#bring(audience),
    );
    this.#turns.set(audience.id, turn);
    const end = () => {
      if (this.#turns.get(audience.id) === turn) this.#turns.delete(audience.id);
    };
    turn.then(end, end);
    return turn;
  }

  isUsable(fingerprint: string): boolean {
    return !this.#unusable.has(fingerprint);
  }

  /** Removes the key of an audience that no export has any more. */
  async remove(audience: string): Promise<void> {
    const { broker, namespace } = this.#options;
    this.#written.delete(audience);
    await deleteIfPresent(broker, sealedRecordType, { namespace, name: audience });
  }

  async #bring(audience: Audience): Promise<AudienceKey> {
    const { world, rotation, sealed, namespace } = this.#options;
    const { present, known } = this.#present(audience.id);
    const step = planKey({
      present,
      known,
      epochSeen: sealed.highest(namespace, audience.id),
      readers: new Map([...audience.readers].map(([cluster, { fingerprint }]) => [cluster, fingerprint])),
      nowSeconds: Math.floor(world.clock.wallMs() / 1000),
      ...rotation(),
    });
    return step.kind === 'keep' ? step.key : this.#write(audience, step, present);
  }

  async #write(
    audience: Audience,
    step: Exclude<KeyStep, { kind: 'keep' }>,
    present: SealedRecord | undefined,
  ): Promise<AudienceKey> {
    const { world, broker, namespace } = this.#options;
    const key = step.kind === 'extend' ? step.key : { epoch: step.epoch, key: world.random.bytes(contentKeyBytes) };
    const kept = step.kind === 'extend' ? step.kept : [];
    const record: SealedRecord = {
      apiVersion: apiVersionOf(sealedRecordType),
      kind: sealedRecordType.kind,
      metadata: { name: audience.id, namespace },
      spec: { audience: audience.id, epoch: key.epoch, readers: await this.#sealFor(audience, key, kept) },
    };
    try {
      const { object } = await apply({ client: broker, type: sealedRecordType, present, change: replaceWith(record) });
      this.#written.set(audience.id, { record: object, key, atMs: world.clock.monotonicMs() });
      return key;
    } catch (error) {
      // Another one may lie there by now.
      this.#written.delete(audience.id);
      throw error;
    }
  }

  async #sealFor(
    audience: Audience,
    { epoch, key }: AudienceKey,
    kept: readonly SealedReader[],
  ): Promise<SealedReader[]> {
    const { hpke, clusterset, clusterId: exporter, log } = this.#options;
    const sealed = new Map(kept.map((reader) => [reader.cluster, reader]));
    const missing = [...audience.readers].filter(([cluster]) => !sealed.has(cluster));
    await inParallel(missing, seals, async ([cluster, { publicKey: recipient, fingerprint }]) => {
      const info = keyInfo({ clusterset, exporter, audience: audience.id, epoch, reader: cluster });
      try {
        const bytes = await hpke.seal({ sender: audience.own, recipient, info, plain: key });
        sealed.set(cluster, { cluster, fingerprint, key: Buffer.from(bytes).toString('base64') });
      } catch (error) {
        // One member's key must not keep the others from reading.
        log.warn('nothing can be sealed for the key of this cluster', { reader: cluster, fingerprint, error });
        this.#unusable.add(fingerprint);
      }
    });
    return [...sealed.values()].sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  }

  #present(id: string): { readonly present: SealedRecord | undefined; readonly known: AudienceKey | undefined } {
    const { sealed, namespace, world } = this.#options;
    const part = sealed.part(namespace);
    const written = this.#written.get(id);
    if (part.isLost(id)) return { present: undefined, known: written?.key };
    const copy = part.get(id);
    const isNew = written !== undefined && world.clock.monotonicMs() - written.atMs < copyBehindMs;
    if (isNew && copy?.metadata.resourceVersion !== written.record.metadata.resourceVersion)
      return { present: written.record, known: written.key };
    const known = sealed.keyOf(namespace, id);
    return { present: copy, known: known?.epoch === copy?.spec.epoch ? known : written?.key };
  }
}
