// `portolan peering`: the gRPC endpoint other meshes talk to, and our side of theirs.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { clusterSetDefaults } from '../../clusterset/kinds/cluster-set.ts';
import { verbs } from '../verbs.ts';

export interface PeeringFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace: string;
  readonly secretsNamespace?: string;
  readonly listen: string;
  readonly advertise?: string;
  readonly trustDomain: string;
  readonly domain?: string;
  readonly ingress: string[];
  readonly ingressProbe: string;
  readonly zone: string[];
  readonly versions: string;
  readonly replicated?: boolean;
  readonly ownRange: string[];
  readonly addressRange?: string[];
  readonly cert?: string;
  readonly key?: string;
  readonly bundle?: string;
  readonly adminListen: string;
  readonly logLevel: LogLevel;
}

export function addPeeringCommand(program: Command, run: (flags: PeeringFlags) => Promise<void>): void {
  program
    .command('peering')
    .description(verbs.peering)
    .requiredOption('--trust-domain <domain>', 'trust domain of this mesh, such as acme.example')
    .option('--kubeconfig <file>', 'the home (default: $KUBECONFIG, ~/.kube/config, or the Pod that it runs in)')
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--namespace <name>', 'namespace of Peers and PeerServices', 'portolan-system')
    .option(
      '--secrets-namespace <name>',
      'namespace of its Secrets and of those that Peers name (default: --namespace)',
    )
    .option('--listen <host:port>', 'address to listen on for peers; port 0 takes a free one', '0.0.0.0:8008')
    .option('--advertise <host:port>', 'that address as peers reach it (default: --listen)')
    .option('--domain <name>', 'domain of names for peers, <service>.<namespace>.<name> (default: the trust domain)')
    .option('--ingress <host:port...>', 'the ingress of this mesh, for connections of peers', [])
    .option(
      '--ingress-probe <seconds>',
      'how often the ingresses of peers and our own are tried, by a TLS handshake; 0: never',
      '6',
    )
    .option('--zone <name...>', 'further own zones; services of peers may not have names in them', [])
    .option(
      '--own-range <cidr...>',
      'Pod, Service and node ranges of this cluster; the ingress of a peer may not be in them',
      [],
    )
    .option('--versions <list>', 'versions of the protocol', 'v1alpha1,v1alpha2')
    .option(
      '--address-range <cidr...>',
      `ranges for addresses of peers' services, one for each family (default: the range of the clusterset, or ${clusterSetDefaults.addressRanges.peers.join(' ')})`,
    )
    .option('--replicated', 'other peering processes use the same home: one of them imports, all share')
    .option('--cert <file>', 'own certificate in PEM, reloaded when it changes (default: a Secret of the home)')
    .option('--key <file>', 'its key in PEM')
    .option('--bundle <file>', 'root certificates for peers, in PEM')
    .option('--admin-listen <host:port>', 'address of /metrics, /livez and /readyz', '127.0.0.1:0')
    .option('--log-level <level>', 'debug, info, warn or error', 'info')
    .action(run);
}
