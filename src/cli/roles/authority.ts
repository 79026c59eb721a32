// `portolan authority`: a DNS server that answers for the names of a federation. The flags are here; main/authority/process.ts
// builds the server from them.

import type { Command } from 'commander';
import { verbs } from '../verbs.ts';
import type { AuthorityFlags } from './authority-flags.ts';
import { addServerOptions, list, plainName } from './dns-server-flags.ts';
import { addEtcdOptions } from './etcd-flags.ts';

export function addAuthorityCommand(program: Command, run: (flags: AuthorityFlags) => Promise<void>): void {
  const command = program
    .command('authority')
    .description(verbs.authority)
    .requiredOption('--federation <name>', 'the federation that it answers for', plainName)
    .option('--suffix <domain>', 'suffix of its names (default: that of the Federation, else federation)', plainName)
    .option('--broker-kubeconfig <file>', 'the broker, whose shards become its records')
    .option(
      '--broker-kubeconfig-from <name>',
      'the Secret in portolan-system of the home that has that kubeconfig; renewed tokens are kept in it',
    )
    .option('--clusterset <name>', 'the clusterset at the broker', 'clusterset');
  addEtcdOptions(
    command,
    'endpoints of etcd, which stores its records; with a broker, one of several authorities writes them',
  )
    .addOption(
      list(
        '--trusted-range <cidr...>',
        "resolvers trusted to name the client's cluster, by address, besides those of the Federation",
      ),
    )
    .addOption(list('--trusted-identity <name...>', 'the same by names in client certificates, over TLS'))
    .addOption(list('--trusted-key <file...>', 'the same by TSIG keys, as tsig-keygen writes them'))
    .addOption(
      list(
        '--secondary <host:port...>',
        'servers that hold a copy of the zone: they may transfer it (AXFR) and are told of changes (NOTIFY)',
      ),
    )
    .addOption(
      list(
        '--transfer-key <file...>',
        'their TSIG keys, as tsig-keygen writes them; without one their address is enough',
      ),
    )
    .option('--federation-cert <file>', "client certificate to post stub zones to members' resolvers")
    .option('--federation-key <file>', 'its key')
    .option(
      '--kubeconfig <file>',
      'the home with the Secret of --broker-kubeconfig-from (default: $KUBECONFIG, ~/.kube/config, or the Pod that it runs in)',
    )
    .option('--context <name>', 'a context of that file other than its current one')
    .addOption(
      list(
        '--forward <host:port...>',
        'nameservers that find the addresses of load balancers which have only a name; without it these are left out',
      ),
    );
  addServerOptions(command, 'Federation');
  command
    .addHelpText(
      'after',
      `
Until its first sync it answers from the copy of names in --state, else SERVFAIL, never NXDOMAIN. Examples:
  portolan authority --federation world --broker-kubeconfig broker.kubeconfig --clusterset prod --listen 10.0.0.53:53
  portolan authority --federation world --etcd http://127.0.0.1:2379 --trusted-range 10.0.0.0/8
`,
    )
    .action(run);
}
