// The broker of an authority: a client with a token that renews itself, and is kept in the Secret of the home that it came from.

import type { Host } from '../../base/host.ts';
import type { Log } from '../../base/log.ts';
import type { Parts } from '../../base/parts.ts';
import type { World } from '../../base/world.ts';
import { startAuthorityRenewal } from '../../clusterset/agent/authority-renewal.ts';
import { keepAuthorityToken } from '../../federation/authority-token.ts';
import { authorityAccount } from '../../federation/rules/authority-rights.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { findHome, loadKubeconfig } from '../../kube/client/kubeconfig.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';

interface Hands {
  readonly world: World;
  readonly log: Log;
  readonly host: Host;
  readonly parts: Parts;
}

export interface AuthorityBrokerFlags {
  readonly federation: string;
  readonly clusterset: string;
  readonly brokerKubeconfig: string;
  /** Name of the Secret that holds the kubeconfig; a renewed token stays in memory without it. */
  readonly brokerKubeconfigFrom?: string;
  /** The kubeconfig of the home. */
  readonly kubeconfig?: string;
  readonly context?: string;
}

export interface AuthorityBroker {
  readonly client: Client;
  /** PEM of the authorities by which the broker is known now; undefined for those of the system. */
  readonly trustedAuthorities: () => string | undefined;
}

export async function openAuthorityBroker(flags: AuthorityBrokerFlags, hands: Hands): Promise<AuthorityBroker> {
  const { world, log, host, parts } = hands;
  const find = () => findHome({ host, clock: world.clock, kubeconfig: flags.brokerKubeconfig });
  const access = await find();
  let trusted = access.certificateAuthority;
  const trustedAuthorities = () => trusted;
  const open = (bearerToken: typeof access.bearerToken): AuthorityBroker => {
    // Read at each new connection: the authority of the broker may be replaced meanwhile.
    const followed = {
      ...{ ...access, bearerToken },
      get certificateAuthority() {
        return trusted;
      },
    };
    const client = createClient(world.network.http(followed as typeof access), {
      world,
      userAgent: 'portolan-authority',
    });
    parts.add('client of the broker', () => client.close());
    const keep = async (certificates: string) => {
      const before = trusted;
      trusted = certificates;
      await storeInSecret(flags, hands, (text) => replaceBase64(text, before ?? '', certificates));
    };
    const renewal = startAuthorityRenewal({ world, log, broker: client, current: trustedAuthorities, keep });
    parts.add('certificate authority of the broker', () => renewal.stop());
    return { client, trustedAuthorities };
  };
  if (access.bearerToken === undefined) return open(undefined);
  const account = { namespace: flags.clusterset, name: authorityAccount(flags.federation) };
  const token = await keepAuthorityToken({
    ...{ world, log, account },
    read: async () => (await find()).bearerToken?.(),
    store: (renewed) => storeToken(flags, hands, renewed),
  });
  parts.add('token at the broker', () => token.stop());
  const broker = open(() => token.current());
  token.renewWith(broker.client);
  return broker;
}

/** PEM text lies in a kubeconfig as base64. */
function replaceBase64(text: string, before: string, after: string): string {
  const encoded = (pem: string) => Buffer.from(pem).toString('base64');
  return before === '' ? text : text.replaceAll(encoded(before), encoded(after));
}

/** Everything else of the kubeconfig stays as the Secret has it now. */
async function storeToken(flags: AuthorityBrokerFlags, hands: Hands, token: string): Promise<void> {
  const { host, world } = hands;
  await storeInSecret(flags, hands, async (text) => {
    const old = await (await loadKubeconfig(text, { host, clock: world.clock })).bearerToken?.();
    return old === undefined ? text : text.replaceAll(old, token);
  });
}

async function storeInSecret(
  flags: AuthorityBrokerFlags,
  { world, host }: Hands,
  change: (text: string) => string | Promise<string>,
): Promise<void> {
  if (flags.brokerKubeconfigFrom === undefined) return;
  const access = await findHome({ host, clock: world.clock, kubeconfig: flags.kubeconfig, context: flags.context });
  const home = createClient(world.network.http(access), { world, userAgent: 'portolan-authority' });
  try {
    const secret = await home.get<Secret>(secretType, { namespace: systemNamespace, name: flags.brokerKubeconfigFrom });
    const text = Buffer.from(secret.data?.[kubeconfigKey] ?? '', 'base64').toString('utf8');
    const changed = await change(text);
    if (changed === text) return;
    const data = { ...secret.data, [kubeconfigKey]: Buffer.from(changed).toString('base64') };
    await home.update<Secret>(secretType, { ...secret, data });
  } finally {
    home.close();
  }
}

const kubeconfigKey = 'kubeconfig';
