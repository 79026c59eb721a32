// `portolan federation kubeconfig`: an account at the broker for the authority of a federation, with the rights that it uses, and
// a kubeconfig for it. An admin's own credentials need not lie where the authority runs.

import type { Command } from 'commander';
import { formatServers, type HttpAccess, parseServers } from '../base/http.ts';
import { formatMoment } from '../base/text/elapsed.ts';
import { yaml } from '../base/yaml.ts';
import { readClusterSet } from '../clusterset/explain/broker-state.ts';
import { type Federation, federationType } from '../federation/kinds/federation.ts';
import { authorityAccount, authorityObjects } from '../federation/rules/authority-rights.ts';
import { getOrUndefined } from '../kube/client/absent.ts';
import { requestToken } from '../kube/client/account-token.ts';
import { install } from '../kube/client/apply.ts';
import { createClient } from '../kube/client/client.ts';
import { findHome, serversExtension } from '../kube/client/kubeconfig.ts';
import { notFoundError, usageError } from './exit-codes.ts';
import { checkedServer, warnIfLoopback } from './reachable.ts';
import { addHomeOptions, type CliDeps, defaultClusterSet, type HomeFlags } from './with-home.ts';

interface KubeconfigFlags extends HomeFlags {
  readonly clusterset: string;
  readonly days: string;
  readonly server?: string;
}

const dayMs = 86_400_000;

export function addFederationKubeconfigCommand(federation: Command, deps: CliDeps): void {
  const command = federation
    .command('kubeconfig')
    .description('make an account at the broker for the authority of a federation, and print a kubeconfig for it')
    .argument('<name>', 'the federation')
    .option('--clusterset <name>', 'the clusterset', defaultClusterSet)
    .option('--days <number>', 'validity of its token, which the authority renews', '365')
    .option(
      '--server <url,url>',
      "the broker's addresses as the authority reaches them (default: those of the kubeconfig)",
    )
    .addHelpText(
      'after',
      `
Run it with the kubeconfig of the broker. Run it again after the Federation names other Secrets.
Example:
  portolan federation kubeconfig world --clusterset prod > authority.kubeconfig
  kubectl create secret generic portolan-authority-broker -n portolan-system --from-file=kubeconfig=authority.kubeconfig`,
    );
  addHomeOptions(command).action(async (name: string, flags: KubeconfigFlags) => {
    if (!/^[1-9]\d{0,3}$/.test(flags.days))
      throw usageError(`--days ${flags.days}: write a number of days, such as 365`);
    const access = await findHome({ host: deps.host, clock: deps.world.clock, ...flags });
    const client = createClient(deps.world.network.http(access), { world: deps.world, userAgent: 'portolan-cli' });
    try {
      const ref = { namespace: flags.clusterset, name };
      // Throws if there is no such set.
      await readClusterSet(client, flags.clusterset);
      const present = await getOrUndefined<Federation>(client, federationType, ref);
      if (present === undefined)
        throw notFoundError(`federation kubeconfig ${name}: there is none; make it with portolan federation create`);
      for (const one of authorityObjects(flags.clusterset, present)) await install(client, one);
      const account = { namespace: flags.clusterset, name: authorityAccount(name) };
      const lifetimeMs = Number(flags.days) * dayMs;
      const { token, expiresAt } = await requestToken(client, { ...account, lifetimeMs });
      const server = flags.server === undefined ? formatServers(access) : checkedServer(flags.server);
      warnIfLoopback(deps, server);
      // The output is the kubeconfig alone.
      deps.warn?.(
        `note: this token ends ${formatMoment(Date.parse(expiresAt), deps.world.clock.wallMs())}; start the authority before that, which renews it`,
      );
      deps.print(
        yaml()
          .stringify(kubeconfigOf({ ...access, ...parseServers(server) }, { name, token }))
          .trimEnd(),
      );
    } finally {
      client.close();
    }
  });
}

function kubeconfigOf(
  {
    server,
    otherServers = [],
    certificateAuthority,
  }: Pick<HttpAccess, 'server' | 'otherServers' | 'certificateAuthority'>,
  { name, token }: { readonly name: string; readonly token: string },
): object {
  const authority =
    certificateAuthority === undefined
      ? {}
      : { 'certificate-authority-data': Buffer.from(certificateAuthority).toString('base64') };
  const extension = { name: serversExtension, extension: { servers: otherServers } };
  const others = otherServers.length === 0 ? {} : { extensions: [extension] };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'broker', cluster: { server, ...authority, ...others } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: 'broker', user: name } }],
    'current-context': name,
  };
}
