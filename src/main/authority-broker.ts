// The broker of an authority: a client with a token that renews itself, and is kept in the Secret of the home that it came from.

import type { Host } from '../base/host.ts';
import type { Log } from '../base/log.ts';
import type { Parts } from '../base/parts.ts';
import type { World } from '../base/world.ts';
import { keepAuthorityToken } from '../federation/authority-token.ts';
import { authorityAccount } from '../federation/rules/authority-rights.ts';
import { type Client, createClient } from '../kube/client/client.ts';
import { findHome, loadKubeconfig } from '../kube/client/kubeconfig.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { type Secret, secretType } from '../kube/objects/secret.ts';

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

export async function openAuthorityBroker(flags: AuthorityBrokerFlags, hands: Hands): Promise<Client> {
  const { world, log, host, parts } = hands;
  const find = () => findHome({ host, clock: world.clock, kubeconfig: flags.brokerKubeconfig });
  const access = await find();
  const open = (bearerToken: typeof access.bearerToken) => {
    const client = createClient(world.network.http({ ...access, bearerToken }), { world, userAgent: 'portolan-dns' });
    parts.add('client of the broker', () => client.close());
    return client;
  };
  if (access.bearerToken === undefined) return open(undefined);
  const account = { namespace: flags.clusterset, name: authorityAccount(flags.federation) };
  const token = await keepAuthorityToken({
    ...{ world, log, account },
    read: async () => (await find()).bearerToken?.(),
    store: (renewed) => storeToken(flags, hands, renewed),
  });
  parts.add('token at the broker', () => token.stop());
  const client = open(() => token.current());
  token.renewWith(client);
  return client;
}

/** Everything else of the kubeconfig stays as the Secret has it now. */
async function storeToken(flags: AuthorityBrokerFlags, { world, host }: Hands, token: string): Promise<void> {
  if (flags.brokerKubeconfigFrom === undefined) return;
  const access = await findHome({ host, clock: world.clock, kubeconfig: flags.kubeconfig, context: flags.context });
  const home = createClient(world.network.http(access), { world, userAgent: 'portolan-dns' });
  try {
    const secret = await home.get<Secret>(secretType, { namespace: systemNamespace, name: flags.brokerKubeconfigFrom });
    const text = Buffer.from(secret.data?.[kubeconfigKey] ?? '', 'base64').toString('utf8');
    const old = await (await loadKubeconfig(text, { host, clock: world.clock })).bearerToken?.();
    if (old === undefined) return;
    const data = { ...secret.data, [kubeconfigKey]: Buffer.from(text.replaceAll(old, token)).toString('base64') };
    await home.update<Secret>(secretType, { ...secret, data });
  } finally {
    home.close();
  }
}

const kubeconfigKey = 'kubeconfig';
