// What an agent has for sealed exports: its keys, what it publishes and opens, and its report. Without a set that allows
// them it reads nothing and makes nothing.

import type { Hpke } from '../../base/keys/hpke.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Reporter, ReportOptions } from '../controllers/reports/reporter.ts';
import { createSealingReporter } from '../controllers/reports/sealing-report.ts';
import { SealedExports } from '../controllers/sealing/sealed-exports.ts';
import type { AgentContext } from '../copies/context.ts';
import type { PolicyCopy } from '../copies/policy-copy.ts';
import { SealedMemory } from '../copies/sealed-memory.ts';
import { SealingKeys } from '../copies/sealing-keys.ts';
import { isSealed } from '../kinds/service-export.ts';
import type { FollowerSealing, Member, MemberFollower } from '../members/follower.ts';

export interface AgentSealingOptions extends ReportOptions {
  readonly hpke: Hpke;
  readonly log: Log;
  readonly policy: () => PolicyCopy;
  readonly members: () => MemberFollower;
}

export class AgentSealing {
  readonly follower: FollowerSealing;
  readonly #options: AgentSealingOptions;
  readonly #keys: SealingKeys;
  readonly #memory: SealedMemory;
  readonly #reporter: Reporter;
  /** Keys of members as they were last, by cluster. */
  readonly #known = new Map<string, string>();
  #context: AgentContext | undefined;
  #exports: SealedExports | undefined;
  #publishAgain: () => void = () => {};

  constructor(options: AgentSealingOptions) {
    this.#options = options;
    const { hpke, clusterId, members } = options;
    const isAllowed = () => this.#isAllowed;
    this.#keys = new SealingKeys({
      ...options,
      isWanted: isAllowed,
      clusters: () => members().clusters.values(),
      onChange: () => this.#keysChanged(),
    });
    this.#memory = new SealedMemory(options);
    this.follower = {
      ...{ hpke, clusterId, memory: this.#memory },
      identity: () => this.#keys.own,
      publicKeyOf: (cluster) => {
        const key = this.#keys.keyOf(cluster);
        return key.kind === 'trusted' ? key.publicKey : undefined;
      },
    };
    const keys = this.#keys;
    this.#reporter = createSealingReporter({ ...options, keys, isAllowed, members });
  }

  /** The exports of this agent. `again` looks at those that are sealed. */
  exportsOf(context: AgentContext, again: (keys: Iterable<string>) => void): SealedExports | undefined {
    const { sealed } = context.members;
    if (sealed === undefined) return undefined;
    this.#context = context;
    this.#exports = new SealedExports({ context, hpke: this.#options.hpke, keys: this.#keys, sealed });
    this.#publishAgain = () => {
      const exported = [...context.copies.exports.values()].filter(isSealed);
      again(exported.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
    };
    return this.#exports;
  }

  start(): void {
    this.#reporter.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#reporter.stop(), this.#memory.stop()]);
  }

  /** Whether what is sealed can be read here, as far as it ever will be. */
  get isReady(): boolean {
    const { sealed } = this.#options.members();
    return !this.#isAllowed || sealed === undefined || sealed.isReady;
  }

  /** The policy of the set, or time, has gone on. */
  look(): void {
    const { sealed } = this.#options.members();
    if (!this.#isAllowed) sealed?.close();
    else if (this.#memory.isLoaded) sealed?.open();
    else this.#remember();
    void this.#keys.look();
    this.#reporter.look();
  }

  clusterChanged(id: string, member: Member | undefined): void {
    const text = JSON.stringify([member?.cluster.spec.sealingKey, member?.cluster.status?.sealingKey]);
    if (this.#known.get(id) === text) return;
    if (member === undefined) this.#known.delete(id);
    else this.#known.set(id, text);
    if (!this.#isAllowed) return;
    void this.#keys.look().then(() => this.#keysChanged());
  }

  /** Replaces keys whose time is over, and clears away what nobody opens. */
  sweep(): void {
    const self = this.#context?.members.get(this.#options.clusterId);
    if (!this.#isAllowed || self === undefined || this.#exports === undefined) return;
    if (this.#exports.isRotationDue(self)) this.#publishAgain();
    this.#exports.sweep(self).catch((error: unknown) => this.#options.log.warn('sealed records not swept', { error }));
  }

  /** Keys first, too: what is listed before they are known would count as unreadable. Tried again by the next look. */
  #remember(): void {
    Promise.all([this.#memory.load(), this.#keys.look()]).then(
      () => this.look(),
      (error: unknown) =>
        this.#options.log.warn('memory of sealed records cannot be read', { error: errorText(error) }),
    );
  }

  #keysChanged(): void {
    this.#options.members().sealed?.reconsider();
    this.#publishAgain();
    this.#reporter.look();
  }

  get #isAllowed(): boolean {
    const policy = this.#options.policy();
    return policy.hasSynced && policy.current.sealing.isAllowed;
  }
}
