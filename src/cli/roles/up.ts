// `portolan up`: one cluster's whole set on the embedded home. The flags are here; main/up/ starts the parts.

import { type Command, Option } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { verbs } from '../verbs.ts';
import { addHomeEtcdOptions, type HomeEtcdFlags } from './etcd-flags.ts';
import { logLevelOption, type SnapshotFlags, snapshotKeyOption, snapshotsOption } from './options.ts';

export type UpProxyMode = 'auto' | 'nftables' | 'userspace' | 'off';

export interface UpFlags extends SnapshotFlags, HomeEtcdFlags {
  readonly data: string;
  readonly listen: string;
  readonly name?: string;
  readonly advertise?: string;
  readonly join?: string;
  readonly namespace: string[];
  readonly region?: string;
  readonly zone?: string;
  readonly dnsListen: string[];
  readonly stubListen?: string;
  readonly forward: string[];
  readonly proxy: UpProxyMode;
  readonly services?: boolean;
  readonly trustDomain?: string;
  readonly peeringListen: string;
  readonly ingress: string[];
  readonly network?: string;
  readonly gateway?: string;
  /** True when no path was given. */
  readonly envoy?: string | true;
  /** `none` turns it off. */
  readonly dashboard: string;
  readonly logLevel: LogLevel;
}

export function addUpCommand(program: Command, run: (flags: UpFlags) => Promise<void>): void {
  const up = program
    .command('up')
    .description(verbs.up)
    .option('--data <dir>', 'data folder', '.portolan')
    .option(
      '--listen <host:port>',
      'address of the API; port 0 takes a free one, and the same after a restart',
      '127.0.0.1:0',
    )
    .option(
      '--name <name>',
      'name of this cluster in the kubeconfig (default: its id in the clusterset, else the folder)',
    )
    .option('--advertise <host[:port]>', 'name or address of this machine as other machines reach it')
    .option('--join <token>', 'join a clusterset: the token, a file that holds it, or - for standard input')
    .addOption(
      list('--namespace <name...>', 'namespaces to create; services are imported only into namespaces that exist'),
    )
    .option('--region <name>', 'region of this cluster')
    .option('--zone <name>', 'zone of this cluster')
    .option('--network <name>', 'with --join: network of this cluster; other networks reach it through its gateway')
    .option(
      '--gateway <address[:port]>',
      'run a gateway, an Envoy that other networks reach at this IP address (default port: 15443)',
    )
    .addOption(
      list(
        '--dns-listen <host:port...>',
        'addresses of the resolver',
        'port 53 of the loopback and of --advertise; a free port if 53 cannot be had',
      ),
    )
    .option(
      '--stub-listen <host:port>',
      'endpoint for stub zones that federations post (default: port 8553 of --advertise, if that is an address)',
    )
    .addOption(list('--forward <host:port...>', 'nameservers for all other names, or a file such as /etc/resolv.conf'))
    .addOption(
      new Option(
        '--proxy <mode>',
        'how clusterset addresses are routed on this machine; auto: by nftables, in userspace if they are in 127.0.0.0/8',
      )
        .choices(['auto', 'nftables', 'userspace', 'off'])
        .default('auto'),
    )
    .option('--services', 'route the cluster IPs of Services on this machine too, by nftables')
    .option('--trust-domain <domain>', 'also run peering, as the mesh with this trust domain')
    .option('--peering-listen <host:port>', 'with --trust-domain: address for peers', '0.0.0.0:8008')
    .addOption(list('--ingress <host:port...>', 'with --trust-domain: the ingress for connections of peers'))
    .option('--envoy [path]', 'run an Envoy beside it, configured by its own discovery server (default: envoy on PATH)')
    .option('--dashboard <host:port>', 'address of the dashboard; "none" turns it off', '127.0.0.1:0')
    .addOption(snapshotsOption())
    .addOption(snapshotKeyOption())
    .addOption(logLevelOption('warn'));
  addHomeEtcdOptions(up)
    .addHelpText(
      'after',
      `
The home, the agent, the resolver and the proxy are parts of one process; Envoy is a child of it. Stopping the process stops
all of them, and so does the end of the Envoy. The proxy starts when the cluster has joined a clusterset. Examples:
  portolan up
  portolan up --join "$TOKEN" --advertise 10.0.0.7
  portolan up --join token.txt --advertise 10.0.0.7 --region eu --zone eu-1
  portolan up --join "$TOKEN" --network lab --gateway 203.0.113.7
  portolan up --trust-domain acme.example --advertise peering.acme.example --ingress ingress.acme.example:15443`,
    )
    .action(run);
}

/** A flag that takes several values; without any it means what is said. */
function list(flags: string, description: string, without = 'none'): Option {
  return new Option(flags, description).default([], without);
}
