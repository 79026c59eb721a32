// Keeps the roots of this cluster's trust domain in a Secret of the home, replaces them in time, and publishes them in the
// ConfigMap from which the agent reports them to the other members.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Credentials } from '../../base/x509/certificates.ts';
import { gatewayName, gatewayReportKeys } from '../../clusterset/rules/networks/gateway-report.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { writeKeys } from '../../kube/client/config-map-keys.ts';
import { makeAuthority, pairIn, textIn } from '../../kube/client/kept-authority.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { gatewayAuthoritySecret, systemNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type KeptRoots, planRoots, publishedRoots, type RootTimes, rootTimes } from '../identity/gateway-roots.ts';

export interface GatewayAuthorityOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly client: Client;
  /** Namespace of the Secret. */
  readonly namespace: string;
  readonly cluster: string;
  readonly times?: RootTimes;
  readonly onChange: () => void;
}

/** Other processes of this role may have replaced a root; steps are days apart. */
const lookMsMax = 3_600_000;
const retryMs = 5000;

export class GatewayAuthority {
  readonly #options: GatewayAuthorityOptions;
  readonly #times: RootTimes;
  #roots: KeptRoots | undefined;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: GatewayAuthorityOptions) {
    this.#options = options;
    this.#times = options.times ?? rootTimes;
  }

  /** Undefined until the home has been asked once. */
  get signing(): Credentials | undefined {
    return this.#roots?.signing;
  }

  /** Calling it again has no effect. */
  start(): void {
    if (this.#timer === undefined && !this.#isStopped) this.#wait(0);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #wait(inMs: number): void {
    if (!this.#isStopped) this.#timer = this.#options.world.timers.after(inMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { log } = this.#options;
    const { lifeMs, overlapMs, formerMs } = this.#times;
    try {
      const roots = await this.#keep();
      const isChanged = JSON.stringify(roots) !== JSON.stringify(this.#roots);
      this.#roots = roots;
      if (isChanged) this.#options.onChange();
      await this.#publish(publishedRoots(roots));
      this.#wait(Math.min(lookMsMax, lifeMs / 10, overlapMs / 4, formerMs / 4));
    } catch (error) {
      log.warn("the roots of this cluster's gateways cannot be kept; trying again", { error: errorText(error) });
      this.#wait(retryMs);
    }
  }

  async #keep(): Promise<KeptRoots> {
    const { client, world, namespace, cluster } = this.#options;
    const metadata = { name: gatewayAuthoritySecret, namespace };
    const authority = {
      ...{ world, client, namespace, name: gatewayAuthoritySecret, commonName: `Portolan gateways ${cluster}` },
      lifetimeMs: this.#times.lifeMs,
    };
    const present = await getOrUndefined<Secret>(client, secretType, metadata);
    const change = (there: Secret | undefined): Secret => {
      const kept = rootsIn(there);
      const plan = { nowMs: world.clock.wallMs(), times: this.#times, make: () => makeAuthority(authority) };
      const roots = planRoots(kept, plan);
      if (there !== undefined && roots === kept) return there;
      const base = there ?? { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls' };
      return { ...base, data: dataOf(roots) };
    };
    const write = () => apply<Secret>({ client, type: secretType, present, change, onConflict: 'retry' });
    const { object } = await write().catch(async (error: unknown) => {
      if (!isNotFound(error)) throw error;
      await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
      return write();
    });
    return rootsIn(object)!;
  }

  async #publish(roots: readonly string[]): Promise<void> {
    const { client } = this.#options;
    const metadata = { name: gatewayName, namespace: systemNamespace };
    await writeKeys(client, metadata, { [gatewayReportKeys.trustRoots]: `${roots.join('\n')}\n` });
  }
}

function rootsIn(secret: Secret | undefined): KeptRoots | undefined {
  const signing = pairIn(secret);
  if (signing === undefined) return undefined;
  const next = { certificate: textIn(secret, 'next.crt'), key: textIn(secret, 'next.key') };
  const former = textIn(secret, 'former.crt');
  return {
    signing,
    ...(next.certificate !== '' && next.key !== '' ? { next } : {}),
    ...(former !== '' ? { former } : {}),
  };
}

function dataOf({ signing, next, former }: KeptRoots): Record<string, string> {
  const texts = {
    ...{ 'tls.crt': signing.certificate, 'tls.key': signing.key },
    ...(next && { 'next.crt': next.certificate, 'next.key': next.key }),
    ...(former && { 'former.crt': former }),
  };
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));
}
