// `portolan proxy`: a node's clusterset addresses, in the kernel or in a process. The flags are here; what is made of them
// is in main/proxy/process.ts.

import { hostname } from 'node:os';
import { type Command, Option } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { verbs } from '../verbs.ts';
import { logLevelOption } from './options.ts';

export interface ProxyFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly node: string;
  readonly mode: 'nftables' | 'userspace';
  readonly clusterId?: string;
  readonly zone?: string;
  readonly region?: string;
  readonly range: readonly string[];
  readonly nodeRange: readonly string[];
  readonly serviceRange: readonly string[];
  readonly services?: boolean;
  readonly redirect: readonly string[];
  readonly envoy?: boolean;
  readonly envoyUid?: string;
  readonly verifyMinutes: string;
  readonly flows: boolean;
  readonly keepSilent?: boolean;
  readonly adminListen: string;
  readonly dryRun?: boolean;
  readonly cleanup?: boolean;
  readonly logLevel: LogLevel;
}

export function addProxyCommand(program: Command, run: (flags: ProxyFlags) => Promise<void>): void {
  program
    .command('proxy')
    .description(verbs.proxy)
    .option(
      '--kubeconfig <file>',
      'the home to watch (default: $KUBECONFIG, ~/.kube/config, or the Pod that it runs in)',
    )
    .option('--context <name>', 'a context of that file other than its current one')
    .option(
      '--node <name>',
      'name of this node; its Node object, if any, has its zone and pod range (default: $NODE_NAME, else the hostname)',
      process.env['NODE_NAME'] || hostname(),
    )
    .addOption(
      new Option(
        '--mode <mode>',
        'nftables: rules in the kernel, needs root; userspace: listens itself on addresses inside 127.0.0.0/8, for trying out',
      )
        .choices(['nftables', 'userspace'])
        .default('nftables'),
    )
    .option('--cluster-id <id>', 'the cluster of this node (default: the id that the cluster joined with)')
    .option('--zone <zone>', 'zone of this node (default: that of its Node, else of its cluster)')
    .option('--region <region>', 'region of this node (default: likewise)')
    .addOption(list('--range <cidr...>', 'clusterset addresses', 'addressRanges.clusterSet of the ClusterSet'))
    .addOption(
      list('--node-range <cidr...>', 'pods of this node, for internalTrafficPolicy Local', 'what its Node says'),
    )
    .addOption(
      list(
        '--service-range <cidr...>',
        "this cluster's own Services, which cannot be endpoints here",
        'what its ServiceCIDRs say',
      ),
    )
    .option(
      '--services',
      "carry the cluster IPs of this cluster's own Services too, on nodes without kube-proxy; wants --service-range where the home does not say",
    )
    .addOption(
      list(
        '--redirect <cidr:port/protocol=port...>',
        "connections there go to this local port, such as the node's Envoy",
      ),
    )
    .option('--envoy', "redirect connections to external services and to peers' services to the Envoy on this node")
    .option('--envoy-uid <uid>', 'do not redirect connections of this user')
    .option('--verify-minutes <n>', "how often the kernel's rules are compared with the plan; 0 never", '10')
    .option('--no-flows', 'keep no record of the last connections, which portolan observe shows')
    .option('--keep-silent', 'keep sending connections to endpoints that do not answer from this node')
    .option(
      '--admin-listen <host:port>',
      'address of /metrics, /livez, /readyz, /status, /verify, /connectivity, /traffic and /flows; port 0 takes a free one',
      '127.0.0.1:0',
    )
    .option('--dry-run', 'print the rules and change nothing')
    .option('--cleanup', 'remove rules and routes from this node and end')
    .addOption(logLevelOption('info'))
    .addHelpText(
      'after',
      `
The rules stay when it stops, and are updated when it starts again. --cleanup removes them. Examples:
  portolan proxy --node node-1 --admin-listen 127.0.0.1:9466
  portolan proxy --dry-run
  portolan proxy --mode userspace --range 127.100.0.0/16
  portolan proxy --redirect 242.0.0.0/8:443/tcp=15001 --envoy-uid 1337`,
    )
    .action(run);
}

/** A flag with several values, and the meaning of none. */
function list(flags: string, description: string, without = 'none'): Option {
  return new Option(flags, description).default([], without);
}
