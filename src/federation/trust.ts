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

export interface FollowedTrust {
  /** Which keys are missing and why; empty if none is. */
  problem(): string;
  onProblem(listener: () => void): () => void;
  stop(): void;
}

/** A resolver that took the stub zone over mutual TLS at its address may name the cluster of its clients from there. */
function postedAddresses({ status }: Federation): string[] {
  const posted = (status?.stubZones ?? []).filter(({ state }) => state === 'Posted');
  return posted.flatMap(({ endpoint }) => (endpoint && addressOf({ endpoint })) || []).filter((text) => parseIp(text));
}

/** Secrets are read, not watched: an authority need not be allowed more. */
const repeatMs = 15_000;
const missingRepeatMs = 3000;

export function followTrust(options: FollowTrustOptions): FollowedTrust {
  const { world, log, federations, given } = options;
  const { client, clusterset } = options.broker;
  const federationKey = `${clusterset}/${options.federation}`;
  const listeners = new Set<() => void>();
  /** By the name of the Secret: what it said when it could last be read. */
  let known = new Map<string, TsigKey>();
  let problem = '';
  let inForce = '';
  let timer: Timer | undefined;
  let turn = Promise.resolve();
  let isStopped = false;

  async function take(): Promise<void> {
    const said = federations.get(federationKey);
    if (said === undefined || isStopped) return;
    const { ranges = [], certificateNames = [], tsigKeys = [] } = said.spec?.source ?? {};
    const trusted = {
      ranges: [...given.trusted.ranges, ...ranges, ...postedAddresses(said)],
      identities: [...given.trusted.identities, ...certificateNames],
    };
    const found = await Promise.all(tsigKeys.map(({ name }) => read(name)));
    if (isStopped) return;
    known = new Map(found.flatMap(({ name, key }) => (key ? [[name, key] as const] : [])));
    put({ trusted, keys: [...given.keys, ...known.values()] });
    tell(found.flatMap(({ why }) => (why === '' ? [] : [why])).join('; '));
    if (tsigKeys.length > 0) again(problem === '' ? repeatMs : missingRepeatMs);
  }

  async function read(name: string): Promise<{ name: string; key?: TsigKey; why: string }> {
    const ref = { namespace: clusterset, name };
    try {
      const found = tsigKeyOf(await client.get<Secret>(secretType, ref));
      return 'problem' in found ? { name, why: found.problem } : { name, key: found, why: '' };
    } catch (error) {
      if (isNotFound(error)) return { name, why: `secret ${clusterset}/${name}: there is none` };
      // The broker is away: the keys known before stay trusted.
      return { name, key: known.get(name), why: `secret ${clusterset}/${name}: ${errorText(error)}` };
    }
  }

  function put(trust: TrustedServers): void {
    const text = JSON.stringify(trust);
    if (text === inForce) return;
    options.setTrust(trust);
    inForce = text;
  }

  function tell(why: string): void {
    if (why === problem) return;
    problem = why;
    if (why === '') log.info('all keys of trusted resolvers can be read');
    else log.warn('cannot read a key of a trusted resolver; the others are in force', { why });
    for (const listener of listeners) listener();
  }

  function again(delayMs: number): void {
    timer?.cancel();
    timer = world.timers.after(delayMs, look);
  }

  function look(): void {
    timer?.cancel();
    turn = turn.then(take).catch((error) => {
      log.warn('cannot apply the list of trusted resolvers', { error: errorText(error) });
    });
  }

  const unsubscribe = federations.on((key, next, previous) => {
    if (key === federationKey && next !== undefined && !isSameSpec(next, previous)) look();
  });
  return {
    problem: () => problem,
    onProblem: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => {
      isStopped = true;
      timer?.cancel();
      unsubscribe();
    },
  };
}
