// `portolan agent`: a cluster's controllers, between its home and the broker.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { verbs } from '../verbs.ts';
import { logLevelOption } from './options.ts';

export interface AgentFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly brokerKubeconfig?: string;
  readonly plugin: readonly string[];
  readonly clusterIpsRouted?: boolean;
  readonly adminListen: string;
  readonly logLevel: LogLevel;
}

export function addAgentCommand(program: Command, run: (flags: AgentFlags) => Promise<void>): void {
  program
    .command('agent')
    .description(verbs.agent)
    .option('--kubeconfig <file>', 'the home (default: $KUBECONFIG, ~/.kube/config, or the Pod that it runs in)')
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--broker-kubeconfig <file>', 'credentials at the broker (default: those of portolan join)')
    .option('--plugin <file...>', 'modules of extension plugins, for external services', [])
    .option(
      '--cluster-ips-routed',
      'the network here routes the cluster IPs of Services, although the home is an embedded one',
    )
    .option(
      '--admin-listen <host:port>',
      'address of /metrics, /livez and /readyz; port 0 takes a free one',
      '127.0.0.1:0',
    )
    .addOption(logLevelOption('info'))
    .addHelpText(
      'after',
      `
Reads its configuration from portolan join, and waits for it. Several agents may run in one cluster: one leads, the others
take over if it fails. Example:
  portolan agent --kubeconfig east.kubeconfig --admin-listen 127.0.0.1:9465`,
    )
    .action(run);
}
