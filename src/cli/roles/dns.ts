// `portolan dns`: a cluster's resolver for cluster.local, clusterset.local, stub zones and what lies beyond. The flags are here;
// main/dns/process.ts builds the server from them.

import { type Command, Option } from 'commander';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { usageError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import type { DnsFlags } from './dns-flags.ts';
import { addServerOptions, list, plainName } from './dns-server-flags.ts';

export function addDnsCommand(program: Command, run: (flags: DnsFlags) => Promise<void>): void {
  const command = program
    .command('dns')
    .description(verbs.dns)
    .option('--cluster-id <id>', 'the cluster that it serves (default: the id that the cluster joined with)')
    .option(
      '--kubeconfig <file>',
      'the home to watch (default: $KUBECONFIG, ~/.kube/config, or the Pod that it runs in)',
    )
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--zone <zone>', 'its zone, to prefer near endpoints')
    .option('--region <region>', 'its region')
    .addOption(new Option('--federation <name>').argParser(refuseAuthority).hideHelp());
  addServerOptions(command, 'ClusterSet');
  addResolverOptions(command);
  command
    .addHelpText(
      'after',
      `
Until its first sync it answers from the copy of names in --state, else SERVFAIL, never NXDOMAIN. Examples:
  portolan dns --kubeconfig east.kubeconfig --listen 10.96.0.10:53 --forward 192.0.2.53
  portolan dns --stub world.svc.federation=10.0.0.53,10.0.0.54
The authority of a federation is portolan authority.
`,
    )
    .action(run);
}

/** One server was both for a while. */
function refuseAuthority(name: string): never {
  throw usageError(
    `dns --federation ${name}: the authority of a federation is a server of its own: portolan authority --federation ${name}, with the same flags`,
  );
}

function addResolverOptions(command: Command): void {
  command.optionsGroup('Options of a resolver:');
  addForwardOptions(command);
  addNameOptions(command);
  addStubOptions(command);
}

/** Names of others: nameservers, files of names, and federations that this server asks. */
function addForwardOptions(command: Command): void {
  command
    .addOption(
      list(
        '--forward <host:port...>',
        'nameservers for all other names, tls://ADDRESS#NAME over TLS, or a file such as /etc/resolv.conf; without it ' +
          'such queries are refused',
      ),
    )
    .addOption(
      list(
        '--hosts <file...>',
        'files of addresses and names, as /etc/hosts has them, for names that are not of the cluster; read again every 5 s',
      ),
    )
    .addOption(list('--records <file...>', 'static records, one per line: db.corp.example A 10.0.0.7; read again too'))
    .addOption(list('--name-rules <file...>', 'rewrites and templates in YAML; read again too'))
    .option(
      '--names-from <configmap>',
      `a ConfigMap in ${systemNamespace} whose keys hosts, records and rules say the same`,
    )
    .option('--local-ttl <seconds>', 'TTL of answers from all of these', '30')
    .option('--cache-size <MiB>', 'memory for answers of other servers, in each thread; 0 keeps none', '32')
    .option('--cache-ttl-max <seconds>', 'longest time that such an answer is used', '3600')
    .option('--cache-stale <seconds>', 'how long it may be used beyond its time while no server answers', '3600')
    .option('--forward-resend-ms <ms>', 'time without a response before a query is sent again (default: 2000)')
    .option('--forward-timeout-ms <ms>', 'time limit of a forwarded query (default: 5000)')
    .option(
      '--forward-waiting <n>',
      'maximum number of waiting forwarded queries, shared fairly between clients',
      '10000',
    )
    .addOption(list('--forward-zone <zone=ns,ns...>', "nameservers for one zone, without the client's cluster"))
    .addOption(
      list('--stub <zone=ns,ns...>', "zone and nameservers of a federation; queries name the client's cluster"),
    )
    .addOption(
      list(
        '--tsig-key <file...>',
        'keys to sign queries, as tsig-keygen writes them; a posted stub zone may name one too',
      ),
    )
    .addOption(list('--sign <zone=key...>', 'sign queries to the nameservers of this stub zone with this key'))
    .addOption(
      list(
        '--zone-tls <zone=name...>',
        'use TLS for the nameservers of this stub zone, which have this name in their certificate',
      ),
    )
    .option('--zone-tls-ca <file>', "certificate authority of those nameservers, and of tls:// (default: the system's)")
    .option('--zone-tls-cert <file>', 'client certificate for them')
    .option('--zone-tls-key <file>', 'its key');
}

/** Names of this cluster and of the clusterset. */
function addNameOptions(command: Command): void {
  command
    .option('--cluster-domain <domain>', "the cluster's own zone (default: cluster.local)")
    .option(
      '--clusterset-domain <domain>',
      "the clusterset's zone (default: that of the ClusterSet at start, else clusterset.local)",
    )
    .addOption(list('--cluster-domain-forward <host:port...>', 'an existing CoreDNS that answers the cluster domain'))
    .option(
      '--cluster-names',
      'also answer <cluster>.<service>.<namespace>.svc.clusterset.local, even if the ClusterSet does not enable it',
    )
    .addOption(
      new Option(
        '--pods <mode>',
        'names of Pods by address (10-244-0-7.shop.pod.cluster.local): those that exist (verified), or any (insecure)',
      )
        .choices(['disabled', 'insecure', 'verified'])
        .default('disabled'),
    )
    .option('--ignore-empty-service', 'answer NXDOMAIN for services of the cluster without a ready endpoint')
    .option('--peers-namespace <name>', 'namespace of PeerServices, the services that peers share', systemNamespace);
}

/** Stub zones that authorities of federations post here. */
function addStubOptions(command: Command): void {
  command
    .option('--stub-listen <host:port>', 'HTTPS endpoint for stub zones that federations post (default: none)')
    .option(
      '--stub-advertise <host[:port]>',
      'that address as the authorities of federations reach it (default: --stub-listen)',
    )
    .option('--stub-cert <file>', "the endpoint's certificate (default: issued by the authority that joining made)")
    .option('--stub-key <file>', 'its key')
    .option('--stub-client-ca <file>', 'certificate authority of clients that post')
    .addOption(list('--stub-identity <name...>', 'names in client certificates that may post'))
    .option('--stub-suffix <domain>', 'suffix of posted stub zones that name none (default: federation)', plainName)
    .option('--stub-file <file>', 'file that stores posted stub zones', '.portolan/stub-zones.json')
    .option('--stub-shared', 'store them in the home instead, for all resolvers of the cluster');
}
