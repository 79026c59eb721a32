// This cluster's keys for sealed exports and those it trusts of other members. Makes the keys where the set allows sealed
// exports and there are none, and notes each confirmed key of another member when it is first seen.

import type { Hpke, KeyPair } from '../../base/keys/hpke.ts';
import { errorText, type Log } from '../../base/log.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isAlreadyExists, isNotFound } from '../../kube/objects/api-error.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { sealingNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import type { Cluster } from '../kinds/cluster.ts';
import { sealingSecretName } from '../membership/membership.ts';
import { pinsData, readSealingSecret, type SealingState, sealingSecret } from '../membership/sealing-secret.ts';
import { type NameSecret, nameSecretOf } from '../rules/sealing/opaque-names.ts';
import { fingerprintOf, type MemberKey, memberKey } from '../rules/sealing/trusted-keys.ts';

export interface OwnKeys extends KeyPair {
  readonly fingerprint: string;
  readonly nameSecret: NameSecret;
}

export interface SealingKeysOptions {
  readonly home: Client;
  readonly log: Log;
  readonly hpke: Hpke;
  readonly clusterId: string;
  readonly isWanted: () => boolean;
  readonly clusters: () => Iterable<Cluster>;
  /** Keys or what is trusted may be others now. */
  readonly onChange: () => void;
}

const place = { namespace: sealingNamespace, name: sealingSecretName };

export class SealingKeys {
  readonly #options: SealingKeysOptions;
  #state: SealingState | undefined;
  #own: OwnKeys | undefined;
  #problem: string | undefined;
  #looking: Promise<void> | undefined;
  #isOutdated = false;

  constructor(options: SealingKeysOptions) {
    this.#options = options;
  }

  /** Undefined while there are none. */
  get own(): OwnKeys | undefined {
    return this.#own;
  }

  /** Why there are none; undefined if nothing is known to be wrong. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get rotateBefore(): number {
    return this.#state?.rotateBefore ?? 0;
  }

  keyOf(cluster: Cluster | undefined): MemberKey {
    const pinned = this.#state?.pins.get(cluster?.metadata.name ?? '');
    const key = memberKey(cluster, pinned);
    // Used only once it is noted, so that a change never goes unseen.
    return key.kind === 'trusted' && pinned === undefined
      ? { kind: 'untrusted', reason: 'NotConfirmed', why: 'its key has just been confirmed' }
      : key;
  }

  /** Reads the keys, and makes and notes what is missing. One at a time. */
  look(): Promise<void> {
    this.#isOutdated = true;
    this.#looking ??= this.#lookAgain().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookAgain(): Promise<void> {
    const { log, isWanted } = this.#options;
    while (this.#isOutdated) {
      this.#isOutdated = false;
      if (!isWanted()) return;
      try {
        await this.#read();
        this.#problem = undefined;
      } catch (error) {
        const problem = `the keys of this cluster cannot be read or made: ${errorText(error)}`;
        if (problem !== this.#problem) log.warn(problem);
        this.#problem = problem;
      }
    }
  }

  async #read(): Promise<void> {
    const { home, onChange } = this.#options;
    const secret = (await getOrUndefined<Secret>(home, secretType, place)) ?? (await this.#make());
    const state = readSealingSecret(secret);
    if (state === undefined) throw new Error(`secret ${place.namespace}/${place.name} holds no pair of keys`);
    const missing = this.#unpinned(state);
    if (missing.size > 0) await home.patch(secretType, place, { kind: 'merge', body: { data: pinsData(missing) } });
    const next = { ...state, pins: new Map([...state.pins, ...missing]) };
    const isSame = textOf(next) === textOf(this.#state);
    this.#state = next;
    if (isSame) return;
    const { privateKey, publicKey } = next.keys;
    const nameSecret = nameSecretOf(privateKey);
    this.#own = { privateKey, publicKey, nameSecret, fingerprint: fingerprintOf(publicKey) };
    onChange();
  }

  async #make(): Promise<Secret> {
    const { home, hpke, log } = this.#options;
    const { object } = sealingSecret(await hpke.makeKeys());
    try {
      const made = await this.#create(object);
      log.info('made the keys of this cluster for sealed exports');
      return made;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return home.get<Secret>(secretType, place);
    }
  }

  /** On a home of an earlier version its namespace may be missing. */
  async #create(secret: Secret): Promise<Secret> {
    const { home } = this.#options;
    try {
      return await home.create<Secret>(secretType, secret);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const { type, object } = manifest(namespaceType, { name: sealingNamespace }, {});
      await home.create(type, object);
      return home.create<Secret>(secretType, secret);
    }
  }

  #unpinned({ pins }: SealingState): Map<string, string> {
    const found = new Map<string, string>();
    for (const cluster of this.#options.clusters()) {
      const id = cluster.metadata.name;
      if (id === this.#options.clusterId || pins.has(id)) continue;
      const key = memberKey(cluster, undefined);
      if (key.kind === 'trusted') found.set(id, key.fingerprint);
    }
    return found;
  }
}

function textOf(state: SealingState | undefined): string {
  if (state === undefined) return '';
  const { keys, pins, rotateBefore } = state;
  return JSON.stringify([Buffer.from(keys.privateKey).toString('base64'), [...pins].sort(), rotateBefore]);
}
