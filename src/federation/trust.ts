// Servers and clusters that a federation's authority trusts: those given at start, and those that its Federation
// names. TSIG keys lie in Secrets at the broker, which are looked at again and again: one that comes later, or is
// renewed, counts from then on. An unreadable entry is reported and does not affect the others.

import type { TsigKey } from '../base/dns/tsig.ts';
import { errorText, type Log } from '../base/log.ts';
import { parseIp } from '../base/net/ip.ts';
import type { Timer, World } from '../base/world.ts';
import type { Client } from '../kube/client/client.ts';
import type { InformerReader } from '../kube/controller/informer.ts';
import { isNotFound } from '../kube/objects/api-error.ts';
import { type Secret, secretType } from '../kube/objects/secret.ts';
import { type Federation, isSameSpec } from './kinds/federation.ts';
import { addressOf } from './rules/poster.ts';
import { tsigKeyOf } from './rules/tsig-secret.ts';

/** Servers trusted to name the client's cluster: by address, by certificate, by TSIG key. */
export interface TrustedServers {
  readonly trusted: { readonly ranges: readonly string[]; readonly identities: readonly string[] };
  readonly keys: readonly TsigKey[];
}

export interface FollowTrustOptions {
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  readonly broker: { readonly client: Client; readonly clusterset: string };
  readonly federation: string;
  readonly federations: InformerReader<Federation>;
  /** Besides whom the Federation names. */
  readonly given: TrustedServers;
  readonly setTrust: (trust: TrustedServers) => void;
}

/** A resolver that took the stub zone over mutual TLS at its address may name the cluster of its clients from there. */
function postedAddresses({ status }: Federation): string[] {
  const posted = (status?.stubZones ?? []).filter(({ state }) => state === 'Posted');
  return posted.flatMap(({ endpoint }) => (endpoint && addressOf({ endpoint })) || []).filter((text) => parseIp(text));
}

/** Secrets are read, not watched: an authority need not be allowed more. */
const repeatMs = 15_000;
const missingRepeatMs = 3000;

export class FollowedTrust {
  readonly #options: FollowTrustOptions;
  readonly #client;
  readonly #clusterset;
  readonly #federationKey;
  readonly #listeners = new Set<() => void>();
  /** By the name of the Secret: what it said when it could last be read. */
  #known = new Map<string, TsigKey>();
  #problem = '';
  #inForce = '';
  #timer: Timer | undefined;
  #turn = Promise.resolve();
  #isStopped = false;
  readonly #unsubscribe;

  constructor(options: FollowTrustOptions) {
    this.#options = options;
    const { client, clusterset } = this.#options.broker;
    this.#client = client;
    this.#clusterset = clusterset;
    this.#federationKey = `${this.#clusterset}/${this.#options.federation}`;
    this.#unsubscribe = this.#options.federations.on((key, next, previous) => {
      if (key === this.#federationKey && next !== undefined && !isSameSpec(next, previous)) this.#look();
    });
  }

  /** Which keys are missing and why; empty if none is. */
  problem(): string {
    return this.#problem;
  }

  onProblem(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#unsubscribe();
  }

  async #take(): Promise<void> {
    const said = this.#options.federations.get(this.#federationKey);
    if (said === undefined || this.#isStopped) return;
    const { ranges = [], certificateNames = [], tsigKeys = [] } = said.spec?.source ?? {};
    const trusted = {
      ranges: [...this.#options.given.trusted.ranges, ...ranges, ...postedAddresses(said)],
      identities: [...this.#options.given.trusted.identities, ...certificateNames],
    };
    const found = await Promise.all(tsigKeys.map(({ name }) => this.#read(name)));
    if (this.#isStopped) return;
    this.#known = new Map(found.flatMap(({ name, key }) => (key ? [[name, key] as const] : [])));
    this.#put({ trusted, keys: [...this.#options.given.keys, ...this.#known.values()] });
    this.#tell(found.flatMap(({ why }) => (why === '' ? [] : [why])).join('; '));
    if (tsigKeys.length > 0) this.#again(this.#problem === '' ? repeatMs : missingRepeatMs);
  }

  async #read(name: string): Promise<{ name: string; key?: TsigKey; why: string }> {
    const ref = { namespace: this.#clusterset, name };
    try {
      const found = tsigKeyOf(await this.#client.get<Secret>(secretType, ref));
      return 'problem' in found ? { name, why: found.problem } : { name, key: found, why: '' };
    } catch (error) {
      if (isNotFound(error)) return { name, why: `secret ${this.#clusterset}/${name}: there is none` };
      // The broker is away: the keys known before stay trusted.
      return { name, key: this.#known.get(name), why: `secret ${this.#clusterset}/${name}: ${errorText(error)}` };
    }
  }

  #put(trust: TrustedServers): void {
    const text = JSON.stringify(trust);
    if (text === this.#inForce) return;
    this.#options.setTrust(trust);
    this.#inForce = text;
  }

  #tell(why: string): void {
    if (why === this.#problem) return;
    this.#problem = why;
    if (why === '') this.#options.log.info('all keys of trusted resolvers can be read');
    else this.#options.log.warn('cannot read a key of a trusted resolver; the others are in force', { why });
    for (const listener of this.#listeners) listener();
  }

  #again(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.world.timers.after(delayMs, () => this.#look());
  }

  #look(): void {
    this.#timer?.cancel();
    this.#turn = this.#turn
      .then(() => this.#take())
      .catch((error) => {
        this.#options.log.warn('cannot apply the list of trusted resolvers', { error: errorText(error) });
      });
  }
}
