// `portolan xds`: the discovery server for Envoy and gRPC clients without a proxy. The flags are here; main/xds/process.ts
// builds the server from them.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { verbs } from '../verbs.ts';
import { logLevelOption } from './options.ts';

export interface XdsFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace: string;
  readonly secretsNamespace?: string;
  readonly peeringNamespace?: string;
  readonly clusterId?: string;
  readonly zone?: string;
  readonly region?: string;
  readonly listen: string;
  readonly host: string[];
  readonly sidecarAccount: string[];
  readonly socket?: string;
  readonly socketMode: string;
  readonly virtualPort: string;
  readonly ingressPort: string;
  readonly gatewayPort: string;
  readonly ownRange: string[];
  readonly plugin: string[];
  readonly adminListen: string;
  readonly logLevel: LogLevel;
}

export function addXdsCommand(program: Command, run: (flags: XdsFlags) => Promise<void>): Command {
  return (
    program
      .command('xds')
      .description(verbs.xds)
      .option(
        '--kubeconfig <file>',
        'the home to watch (default: $KUBECONFIG, ~/.kube/config, or the Pod that it runs in)',
      )
      .option('--context <name>', 'a context of that file other than its current one')
      .option('--namespace <name>', 'namespace of Peers and PeerServices', systemNamespace)
      .option('--secrets-namespace <name>', 'namespace of the Secret with its authority (default: --namespace)')
      .option('--peering-namespace <name>', 'namespace of the Secrets of portolan peering (default: --namespace)')
      .option('--cluster-id <id>', 'the cluster it serves (default: the id that the cluster joined with)')
      .option('--zone <zone>', 'the zone of the cluster, if the clusterset does not name one')
      .option('--region <region>', 'the region of the cluster, if the clusterset does not name one')
      .option('--listen <host:port>', 'address for proxies, with mutual TLS; "none" turns it off', '127.0.0.1:15010')
      .option('--host <name...>', 'further names and addresses of this server, for its certificate', [])
      .option(
        '--sidecar-account <namespace/account...>',
        'ServiceAccounts whose Pods may start a sidecar that calls peers in their name',
        [],
      )
      .option(
        '--socket <path>',
        'a unix socket for gRPC clients on this machine; its file permissions decide who may connect',
      )
      .option('--socket-mode <octal>', 'permissions of that socket, for its owner and group only', '0660')
      .option('--virtual-port <port>', 'port of sidecars for redirected connections', '15003')
      .option('--ingress-port <port>', "port of the ingress for peers' connections", '15443')
      .option('--gateway-port <port>', 'port of the gateway for clusters in other networks', '15443')
      .option('--own-range <cidr...>', 'ranges of this cluster, to which no name of a peer may lead', [])
      .option('--plugin <file...>', 'modules of extension plugins, for external services', [])
      .option('--admin-listen <host:port>', 'address of /metrics, /livez, /readyz and /status', '127.0.0.1:0')
      .addOption(logLevelOption('info'))
      // Options behind a verb are the verb's own, though the role has some of the same name.
      .enablePositionalOptions()
      .action(run)
  );
}
