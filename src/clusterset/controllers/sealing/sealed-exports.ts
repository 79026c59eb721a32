// Publishes exports that only some clusters may read: each of their records sealed in one of its own, under a name that
// tells nothing. Whoever cannot be sealed for gets nothing and is named.

import { inParallel } from '../../../base/in-parallel.ts';
import type { Hpke } from '../../../base/keys/hpke.ts';
import { deleteIfPresent } from '../../../kube/client/absent.ts';
import { apply, isAsWanted, replaceWith } from '../../../kube/client/apply.ts';
import { apiVersionOf, type KubernetesObject } from '../../../kube/objects/object.ts';
import type { AgentContext } from '../../copies/context.ts';
import type { OwnKeys, SealingKeys } from '../../copies/sealing-keys.ts';
import { type SealedRecord, sealedRecordType } from '../../kinds/sealed-record.ts';
import { byService, type Member } from '../../members/follower.ts';
import type { SealedCopy } from '../../members/sealed-copy.ts';
import { parseServiceKey, recordName } from '../../rules/names.ts';
import { isKeyDue } from '../../rules/sealing/key-record.ts';
import { audienceId, sealedName } from '../../rules/sealing/opaque-names.ts';
import type { PlainRecord } from '../../rules/sealing/plain-record.ts';
import { nonceBytes, sealRecord } from '../../rules/sealing/sealed-content.ts';
import { AudienceKeys } from './audience-keys.ts';

export interface SealedExportsOptions {
  readonly context: AgentContext;
  readonly hpke: Hpke;
  readonly keys: SealingKeys;
  readonly sealed: SealedCopy;
}

export interface SealedRequest {
  readonly key: string;
  readonly self: Member;
  /** Ids of the clusters that may import it; undefined is all. */
  readonly exportTo: readonly string[] | undefined;
  /** The slices, then the shard: an import that appears has something behind it. */
  readonly records: readonly PlainRecord[];
}

/** Who it is sealed for besides this cluster, and who of those named it is not. */
export interface SealedFor {
  readonly readers: readonly string[];
  readonly without: readonly string[];
}

/** Writes for one service to one home. */
const writes = { atOnceMax: 8 };
/** A key record without a use is left that long: what is sealed with it may be on its way. */
const unusedKeySeconds = 120;

export class SealedExports {
  readonly #options: SealedExportsOptions;
  readonly #audiences: AudienceKeys;
  #lastCounter = 0;

  constructor(options: SealedExportsOptions) {
    this.#options = options;
    const { hpke, keys, sealed, context } = options;
    const { world, log, broker, membership } = context;
    this.#audiences = new AudienceKeys({
      ...{ world, log, hpke, broker, sealed, ...membership },
      rotation: () => ({ ...context.policy().sealing, rotateBefore: keys.rotateBefore }),
    });
  }

  /** Why nothing can be sealed; undefined if it can. */
  get obstacle(): string | undefined {
    const { context, keys, sealed } = this.#options;
    if (!context.policy().sealing.isAllowed)
      return 'the clusterset does not allow sealed exports: its admin allows them with portolan broker init --sealed-exports Allowed';
    if (keys.own === undefined) return keys.problem ?? 'the keys of this cluster are not there yet';
    if (!sealed.isReady) return sealed.problem ?? 'sealed records have not been read yet';
    return undefined;
  }

  async publish({ key, self, exportTo, records }: SealedRequest): Promise<SealedFor> {
    const { own } = this.#options.keys;
    if (own === undefined) throw new Error('there are no keys to seal with');
    const id = audienceId(own.nameSecret, exportTo);
    const audienceKey = await this.#audiences.ensure({ id, own, readers: this.#readersOf(exportTo, own).readers });
    const { readers, without } = this.#readersOf(exportTo, own);
    const names = new Set(records.map((record) => nameOf(own, record)));
    const [shard, slices] = [records.at(-1)!, records.slice(0, -1)];
    const bring = (record: PlainRecord) => this.#bring(self, record, { id, own, ...audienceKey });
    await inParallel(slices, writes, bring);
    await bring(shard);
    await this.#removeOthers(key, self, names);
    return { readers: [...readers.keys()].filter((reader) => reader !== self.id), without };
  }

  async withdraw(key: string, self: Member): Promise<void> {
    await this.#removeOthers(key, self, new Set());
  }

  /** Whether anything of the service lies sealed at the broker. */
  hasRecords(key: string, self: Member): boolean {
    return this.#recordsOf(key, self).length > 0;
  }

  /** Whether a key in use is to be replaced by now. */
  isRotationDue(self: Member): boolean {
    const { context, keys, sealed } = this.#options;
    const nowSeconds = this.#nowSeconds();
    const facts = { ...context.policy().sealing, nowSeconds, rotateBefore: keys.rotateBefore };
    const records = sealed.part(self.cluster.spec.namespace).values();
    return records.some(({ metadata, spec }) => metadata.name === spec.audience && isKeyDue(spec.epoch, facts));
  }

  /** Removes keys that nothing is sealed with, and records that nobody can open any more, this cluster included. */
  async sweep(self: Member): Promise<void> {
    const { sealed, context } = this.#options;
    if (!sealed.isReady) return;
    const { namespace } = self.cluster.spec;
    const records = sealed.part(namespace).values();
    const used = new Set(records.filter(isContent).map(({ spec }) => spec.audience));
    for (const record of records) {
      const { name } = record.metadata;
      const ageSeconds = this.#nowSeconds() - record.spec.epoch;
      if (ageSeconds < unusedKeySeconds) continue;
      if (!isContent(record) && !used.has(name)) await this.#audiences.remove(name);
      const isOurs = !isContent(record) || sealed.openedFrom(namespace, name) !== undefined;
      const { resourceVersion } = record.metadata;
      if (!isOurs) await deleteIfPresent(context.broker, sealedRecordType, { namespace, name }, { resourceVersion });
    }
  }

  #readersOf(exportTo: readonly string[] | undefined, own: OwnKeys) {
    const { context, keys } = this.#options;
    const { members, membership } = context;
    const { publicKey, fingerprint } = own;
    const readers = new Map([[membership.clusterId, { publicKey: publicKey as Uint8Array, fingerprint }]]);
    const without: string[] = [];
    for (const id of exportTo ?? members.all().map((member) => member.id)) {
      if (id === membership.clusterId) continue;
      const found = keys.keyOf(members.get(id)?.cluster);
      if (found.kind === 'trusted' && this.#audiences.isUsable(found.fingerprint)) readers.set(id, found);
      else if (found.kind === 'trusted') without.push(`${id} sees nothing: what it published as its key is none`);
      else without.push(`${id} sees nothing: ${found.why}`);
    }
    return { readers, without };
  }

  async #bring(
    self: Member,
    record: PlainRecord,
    seal: { readonly id: string; readonly own: OwnKeys; readonly epoch: number; readonly key: Uint8Array },
  ): Promise<void> {
    const { context, sealed } = this.#options;
    const { namespace, clusterset } = context.membership;
    const name = nameOf(seal.own, record);
    const part = sealed.part(namespace);
    const present = part.isLost(name) ? undefined : part.get(name);
    if (present !== undefined && this.#isAsWanted(present, record, seal)) return;
    const counter = this.#nextCounter(Math.max(present?.spec.counter ?? 0, sealed.highest(namespace, name)));
    const place = { clusterset, exporter: self.id, object: name, audience: seal.id, epoch: seal.epoch, counter };
    const nonce = context.world.random.bytes(nonceBytes);
    const wanted: SealedRecord = {
      apiVersion: apiVersionOf(sealedRecordType),
      kind: sealedRecordType.kind,
      metadata: { name, namespace },
      spec: {
        audience: seal.id,
        epoch: seal.epoch,
        counter,
        data: sealRecord(record, place, { key: seal.key, nonce }),
      },
    };
    await apply({ client: context.broker, type: sealedRecordType, present, change: replaceWith(wanted) });
  }

  /** Whether the very object at the broker opens to this record. */
  #isAsWanted(
    { metadata, spec }: SealedRecord,
    record: PlainRecord,
    { id, epoch }: { readonly id: string; readonly epoch: number },
  ): boolean {
    const { sealed, context } = this.#options;
    const opened = sealed.openedFrom(context.membership.namespace, metadata.name);
    const origin = opened && sealed.originOf(opened);
    if (origin?.resourceVersion !== metadata.resourceVersion || spec.audience !== id || spec.epoch !== epoch)
      return false;
    return isAsWanted<KubernetesObject>(opened!, { ...record, apiVersion: opened!.apiVersion });
  }

  async #removeOthers(key: string, self: Member, names: ReadonlySet<string>): Promise<void> {
    const { namespace } = self.cluster.spec;
    const others = this.#recordsOf(key, self).filter((name) => !names.has(name));
    // The shard first: without it the slices are not read.
    for (const name of others)
      await deleteIfPresent(this.#options.context.broker, sealedRecordType, { namespace, name });
  }

  /** Names of the sealed records of a service, its shard first. */
  #recordsOf(key: string, self: Member): string[] {
    const { sealed } = this.#options;
    const { namespace } = self.cluster.spec;
    const shard = sealed.shards(namespace)?.get(recordName(parseServiceKey(key)));
    const slices = self.endpoints.byIndex(byService, key);
    return [shard, ...slices].flatMap((record) => (record && sealed.originOf(record)?.name) ?? []);
  }

  /** Never the same twice, also after a record was deleted and made again. */
  #nextCounter(present: number): number {
    this.#lastCounter = Math.max(
      this.#lastCounter + 1,
      present + 1,
      Math.floor(this.#options.context.world.clock.wallMs()),
    );
    return this.#lastCounter;
  }

  #nowSeconds(): number {
    return Math.floor(this.#options.context.world.clock.wallMs() / 1000);
  }
}

function nameOf({ nameSecret }: OwnKeys, { kind, metadata }: PlainRecord): string {
  return sealedName(nameSecret, { kind, name: metadata.name });
}

function isContent({ metadata, spec }: SealedRecord): boolean {
  return metadata.name !== spec.audience;
}
