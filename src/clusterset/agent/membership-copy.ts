// This cluster's membership as its home has it now: comes with joining, changes when the token is renewed, goes with
// leaving. While the home is away the last one known holds.

import { errorText, type Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { isLeaving, type MembershipRecord, membershipSecretName, readMembership } from '../membership/membership.ts';

export interface MembershipCopyOptions {
  readonly home: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Called after each change. */
  readonly onChange: () => void;
}

export class MembershipCopy {
  readonly #informer: Informer<Secret>;
  readonly #log: Log;
  #current: MembershipRecord | undefined;

  constructor({ home, world, log, onChange }: MembershipCopyOptions) {
    this.#log = log;
    this.#informer = createInformer<Secret>({
      client: home,
      world,
      log,
      type: secretType,
      namespace: systemNamespace,
      fieldSelector: `metadata.name=${membershipSecretName}`,
    });
    this.#informer.on((_key, next) => {
      this.#current = this.#read(next);
      onChange();
    });
  }

  start(): void {
    this.#informer.start();
  }

  stop(): void {
    this.#informer.stop();
  }

  /** Resolves when it is known whether the cluster is a member. */
  whenSynced(signal?: AbortSignal): Promise<void> {
    return this.#informer.whenSynced(signal);
  }

  /** Absent before the cluster has joined and from the moment it begins to leave. */
  get current(): MembershipRecord | undefined {
    return this.#current;
  }

  #read(secret: Secret | undefined): MembershipRecord | undefined {
    if (secret === undefined || isLeaving(secret)) return undefined;
    try {
      return readMembership(secret);
    } catch (error) {
      this.#log.error('membership cannot be read', { error: errorText(error) });
      return undefined;
    }
  }
}
