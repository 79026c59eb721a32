// `portolan peering`: the gRPC endpoint other meshes talk to, and our side of theirs.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { clusterSetDefaults } from '../../clusterset/kinds/cluster-set.ts';
import { verbs } from '../verbs.ts';

export interface PeeringFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace: string;
  readonly listen: string;
  readonly advertise?: string;
  readonly trustDomain: string;
  readonly domain?: string;
  readonly ingress: string[];
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
    .requiredOption('--trust-domain <domain>', 'of this mesh, such as acme.example')
    .option('--kubeconfig <file>', 'the home (default: $KUBECONFIG, ~/.kube/config, or the Pod we run in)')
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--namespace <name>', 'where Peers, PeerServices and Secrets lie', 'portolan-system')
    .option('--listen <host:port>', 'where peers connect; port 0 takes a free one', '0.0.0.0:8008')
    .option('--advertise <host:port>', 'how peers reach that (default: what is listened on)')
    .option('--domain <name>', 'services are named <service>.<namespace>.<name> to peers (default: the trust domain)')
    .option('--ingress <host:port...>', 'the ingress of this mesh, where peers send their connections', [])
    .option('--zone <name...>', 'further zones of our own, in which no peer may name anything', [])
    .option(
      '--own-range <cidr...>',
      'Pod, Service and node ranges of this cluster, where no peer may have its ingress',
      [],
    )
    .option('--versions <list>', 'versions of the protocol that are spoken', 'v1alpha1,v1alpha2')
    .option(
      '--address-range <cidr...>',
      `where services of peers get their addresses from, one range for each family (default: the range of the clusterset, or ${clusterSetDefaults.addressRanges.peers.join(' ')})`,
    )
    .option('--replicated', 'another process like this works on the same home: one of them takes, both give')
    .option('--cert <file>', 'our certificate in PEM, looked at again and again (default: a Secret of the home)')
    .option('--key <file>', 'its key in PEM')
    .option('--bundle <file>', 'the roots by which peers know us, in PEM')
    .option('--admin-listen <host:port>', 'where /metrics, /livez and /readyz are', '127.0.0.1:0')
    .option('--log-level <level>', 'debug, info, warn or error', 'info')
    .action(run);
}
