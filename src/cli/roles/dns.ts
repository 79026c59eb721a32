// `portolan dns`: a cluster's resolver for cluster.local, clusterset.local, stub zones and what lies beyond; a federation's
// authority; or both in one server. The flags are here; main/dns/process.ts builds the server from them.

import { type Command, Option } from 'commander';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { verbs } from '../verbs.ts';
import type { DnsFlags } from './dns-flags.ts';
import { logLevelOption } from './options.ts';

export function addDnsCommand(program: Command, run: (flags: DnsFlags) => Promise<void>): void {
  const command = program
    .command('dns')
    .description(verbs.dns)
    .option(
      '--cluster-id <id>',
      'the cluster that it serves (default: the id that the cluster joined with, none with --federation)',
    )
    .option(
      '--listen <host:port...>',
      'addresses to listen on, UDP and TCP; ports may differ, and port 0 takes a free one',
      ['127.0.0.1:53'],
    )
    .option(
      '--admin-listen <host:port>',
      'address of /metrics, /livez, /readyz, /explain and /querylog; port 0 takes a free one',
      '127.0.0.1:0',
    )
    .option(
      '--kubeconfig <file>',
      'the home to watch (default: $KUBECONFIG, ~/.kube/config, or the Pod that it runs in)',
    )
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--zone <zone>', 'its zone, to prefer near endpoints')
    .option('--region <region>', 'its region')
    .option(
      '--workers <n>',
      'threads that share the port; 0 serves in the main one (default: one for each core beyond the first)',
    )
    .option(
      '--take-over',
      'listen beside the portolan dns that has these addresses now, once all names are read; stop that one after `ready`',
    )
    .option('--lameduck <seconds>', 'how long to keep answering after SIGTERM, while /readyz fails', '0')
    .addOption(list('--client <cidr...>', 'allowed clients', 'private and loopback addresses'))
    .addOption(
      list(
        '--server-address <ip...>',
        'addresses of the server that its zones name (NS)',
        'those it listens on, if they are its own',
      ),
    )
    .option('--ttl <seconds>', 'TTL of answers from its own zones (default: 5, or that of the Federation)')
    .option(
      '--state <dir>',
      'folder for a copy of all names, which are answered at once after a restart, marked as stale (default: no copy)',
    )
    .option('--state-max-age <hours>', 'maximum age of that copy', '24')
    .option('--tls-port <port>', 'DNS over TLS, on the same addresses', '853')
    .option(
      '--tls-cert <file>',
      'certificate for DNS over TLS; with --tls-key it is served, and read again when it is renewed',
    )
    .option('--tls-key <file>', 'its key')
    .option('--tls-client-ca <file>', 'certificate authority of client certificates')
    .option(
      '--source-option <code>',
      "the EDNS option that names the client's cluster, 65001 to 65534 (default: 65001, or that of the Federation)",
    )
    .addOption(logLevelOption('info'));
  addResolverOptions(command);
  addAuthorityOptions(command);
  command
    .addHelpText(
      'after',
      `
Until its first sync it answers from the copy of names in --state, else SERVFAIL, never NXDOMAIN. Examples:
  portolan dns --kubeconfig east.kubeconfig --listen 10.96.0.10:53 --forward 192.0.2.53
  portolan dns --stub world.svc.federation=10.0.0.53,10.0.0.54
  portolan dns --federation world --broker-kubeconfig broker.kubeconfig --clusterset prod --listen 10.0.0.53:53
  portolan dns --federation world --etcd http://127.0.0.1:2379 --trusted-range 10.0.0.0/8
`,
    )
    .action(run);
}

function addResolverOptions(command: Command): void {
  command
    .optionsGroup('Options of a resolver:')
    .addOption(
      list(
        '--forward <host:port...>',
        'nameservers for all other names, tls://ADDRESS#NAME over TLS, or a file such as /etc/resolv.conf; without it ' +
          'such queries are refused',
      ),
    )
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
    .option('--zone-tls-key <file>', 'its key')
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
    .option('--peers-namespace <name>', 'namespace of PeerServices, the services that peers share', systemNamespace)
    .option('--stub-listen <host:port>', 'HTTPS endpoint for stub zones that federations post (default: none)')
    .option(
      '--stub-advertise <host[:port]>',
      'that address as the authorities of federations reach it (default: --stub-listen)',
    )
    .option('--stub-cert <file>', "the endpoint's certificate (default: issued by the authority that joining made)")
    .option('--stub-key <file>', 'its key')
    .option('--stub-client-ca <file>', 'certificate authority of clients that post')
    .addOption(list('--stub-identity <name...>', 'names in client certificates that may post'))
    .option('--stub-file <file>', 'file that stores posted stub zones', '.portolan/stub-zones.json')
    .option('--stub-shared', 'store them in the home instead, for all resolvers of the cluster');
}

function addAuthorityOptions(command: Command): void {
  command
    .optionsGroup("Options of a federation's authority:")
    .option('--federation <name>', 'be an authority of this federation', plainName)
    .option('--suffix <domain>', 'suffix of its names (default: that of the Federation, else federation)', plainName)
    .option('--broker-kubeconfig <file>', 'the broker, whose shards become its records')
    .option(
      '--broker-kubeconfig-from <name>',
      'the Secret in portolan-system of the home that has that kubeconfig; renewed tokens are kept in it',
    )
    .option('--clusterset <name>', 'the clusterset at the broker', 'clusterset')
    .option(
      '--etcd <url,url>',
      'endpoints of etcd, which stores its records; with a broker, one of several authorities writes them',
    )
    .option('--etcd-ca <file>', "certificate authority of etcd (default: the system's)")
    .option('--etcd-cert <file>', 'client certificate for etcd')
    .option('--etcd-key <file>', 'its key')
    .option('--etcd-user <name>', 'user of etcd')
    .option('--etcd-password-file <file>', 'file with its password')
    .addOption(
      list(
        '--trusted-range <cidr...>',
        "resolvers trusted to name the client's cluster, by address, besides those of the Federation",
      ),
    )
    .addOption(list('--trusted-identity <name...>', 'the same by names in client certificates, over TLS'))
    .addOption(list('--trusted-key <file...>', 'the same by TSIG keys, as tsig-keygen writes them'))
    .option('--federation-cert <file>', "client certificate to post stub zones to members' resolvers")
    .option('--federation-key <file>', 'its key');
}

/** Names are the same in upper and lower case, with or without a dot at the end. */
function plainName(text: string): string {
  return text.replace(/\.$/, '').toLowerCase();
}

/** A flag that takes several values; `without` describes its default. */
function list(flags: string, description: string, without = 'none'): Option {
  return new Option(flags, description).default([], without);
}
