// `portolan dns`: a cluster's resolver for cluster.local, clusterset.local, stub zones and what lies beyond; a federation's
// authority; or both in one server. The flags are here; main/dns-process.ts builds the server from them.

import { type Command, Option } from 'commander';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { verbs } from '../verbs.ts';
import type { DnsFlags } from './dns-flags.ts';
import { logLevelOption } from './options.ts';

export function addDnsCommand(program: Command, run: (flags: DnsFlags) => Promise<void>): void {
  const command = program
    .command('dns')
    .description(verbs.dns)
    .option('--cluster-id <id>', 'the cluster it stands in; without it only a federation is answered')
    .option('--listen <host:port...>', 'where to listen, UDP and TCP; ports may differ, and port 0 takes a free one', [
      '127.0.0.1:53',
    ])
    .option(
      '--admin-listen <host:port>',
      'where /metrics, /livez, /readyz, /explain and /querylog are; port 0 takes a free one',
      '127.0.0.1:0',
    )
    .option('--kubeconfig <file>', 'the home to watch (default: $KUBECONFIG, ~/.kube/config, or the Pod we run in)')
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--zone <zone>', 'the zone it stands in, for those who prefer near endpoints')
    .option('--region <region>', 'the region it stands in')
    .option(
      '--workers <n>',
      'threads that share the port; 0 serves in the main one (default: one for each core beyond the first)',
    )
    .option(
      '--lameduck <seconds>',
      'keep answering for so long after SIGTERM, while /readyz says that it is stopping',
      '0',
    )
    .addOption(list('--client <cidr...>', 'who may ask', 'private and loopback addresses'))
    .addOption(
      list(
        '--server-address <ip...>',
        'addresses of the server that its zones name (NS)',
        'those it listens on, if they are its own',
      ),
    )
    .option('--ttl <seconds>', 'of answers from our own zones (default: 5, or what the federation says)')
    .option(
      '--state <dir>',
      'where a copy of all names is kept: after a restart they are answered at once, marked as old; off if absent',
    )
    .option('--state-max-age <hours>', 'an older copy is not used', '24')
    .option('--tls-port <port>', 'DNS over TLS, on the same addresses', '853')
    .option('--tls-cert <file>', 'certificate for DNS over TLS; with --tls-key it is served')
    .option('--tls-key <file>', 'its key')
    .option('--tls-client-ca <file>', 'whose client certificates are believed over TLS')
    .option(
      '--source-option <code>',
      'the EDNS option that names the asking cluster, 65001 to 65534 (default: 65001, or what the federation says)',
    )
    .addOption(logLevelOption('info'));
  addResolverOptions(command);
  addAuthorityOptions(command);
  command
    .addHelpText(
      'after',
      `
Until its watches have synced it answers from the copy of names in --state, if there is one, and otherwise SERVFAIL, never
NXDOMAIN. Examples:
  portolan dns --cluster-id east --kubeconfig east.kubeconfig --listen 10.96.0.10:53 --forward 192.0.2.53
  portolan dns --cluster-id east --stub world.svc.federation=10.0.0.53,10.0.0.54
  portolan dns --federation world --broker-kubeconfig broker.kubeconfig --clusterset prod --listen 10.0.0.53:53
  portolan dns --federation world --etcd http://127.0.0.1:2379 --peer 10.0.0.0/8
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
        'nameservers for all other names, tls://ADDRESS#NAME over TLS, or a file such as /etc/resolv.conf; without any ' +
          'they are refused',
      ),
    )
    .option('--forward-resend-ms <ms>', 'a nameserver that stays silent so long is asked once more (default: 2000)')
    .option('--forward-timeout-ms <ms>', 'the longest a query waits for nameservers (default: 5000)')
    .option('--forward-waiting <n>', 'how many queries may wait for nameservers, shared fairly by client', '10000')
    .addOption(list('--forward-zone <zone=ns,ns...>', 'nameservers for one zone, asked without word of who asks'))
    .addOption(list('--stub <zone=ns,ns...>', "a federation's zone and nameservers, which are told which cluster asks"))
    .addOption(list('--tsig-key <file...>', 'keys to sign with, as tsig-keygen writes them; a post may name one too'))
    .addOption(list('--sign <zone=key...>', 'what goes to the nameservers of this stub zone is signed with this key'))
    .addOption(
      list(
        '--zone-tls <zone=name...>',
        'the nameservers of this stub zone are asked over TLS and have this name there',
      ),
    )
    .option(
      '--zone-tls-ca <file>',
      "who signs their certificates, and those of tls:// (default: the system's authorities)",
    )
    .option('--zone-tls-cert <file>', 'client certificate shown to them')
    .option('--zone-tls-key <file>', 'its key')
    .option('--cluster-domain <domain>', "the cluster's own zone (default: cluster.local)")
    .option(
      '--clusterset-domain <domain>',
      "the clusterset's zone (default: what the clusterset says at start, else clusterset.local)",
    )
    .addOption(list('--cluster-domain-forward <host:port...>', 'an existing CoreDNS that answers the cluster domain'))
    .option(
      '--cluster-names',
      'also answer <cluster>.<service>.<namespace>.svc.clusterset.local, whatever the clusterset says',
    )
    .addOption(
      new Option(
        '--pods <mode>',
        'names of Pods by address (10-244-0-7.shop.pod.cluster.local): those that exist (verified), or any (insecure)',
      )
        .choices(['disabled', 'insecure', 'verified'])
        .default('disabled'),
    )
    .option('--ignore-empty-service', 'services of the cluster without a ready endpoint do not exist (NXDOMAIN)')
    .option('--peers-namespace <name>', 'where PeerServices lie: names that peers share', systemNamespace)
    .option('--stub-listen <host:port>', 'HTTPS endpoint where federations post their stub zones; off if absent')
    .option('--stub-cert <file>', "the endpoint's certificate")
    .option('--stub-key <file>', 'its key')
    .option('--stub-client-ca <file>', 'who signs the certificates of those who post')
    .addOption(list('--stub-identity <name...>', 'names in certificates that may post'))
    .option('--stub-file <file>', 'where posted stub zones survive a restart', '.portolan/stub-zones.json');
}

function addAuthorityOptions(command: Command): void {
  command
    .optionsGroup("Options of a federation's authority:")
    .option('--federation <name>', 'be an authority of this federation', plainName)
    .option(
      '--suffix <domain>',
      'its names end in this, whatever the federation says (default: what it says, else federation)',
      plainName,
    )
    .option('--broker-kubeconfig <file>', 'the broker, whose shards are its records')
    .option('--clusterset <name>', 'the clusterset at the broker', 'clusterset')
    .option(
      '--etcd <url,url>',
      'endpoints of etcd, where its records are; with a broker, one of several authorities keeps them there',
    )
    .option('--etcd-ca <file>', "who signs etcd's certificates (default: the system's authorities)")
    .option('--etcd-cert <file>', 'client certificate for etcd')
    .option('--etcd-key <file>', 'its key')
    .option('--etcd-user <name>', 'user of etcd')
    .option('--etcd-password-file <file>', 'where its password is')
    .addOption(
      list(
        '--peer <cidr...>',
        'resolvers whose word about the asking cluster is taken, besides what the federation says',
      ),
    )
    .addOption(list('--peer-identity <name...>', 'the same by names in client certificates, over TLS'))
    .addOption(list('--peer-key <file...>', 'the same by TSIG keys, as tsig-keygen writes them'))
    .option('--federation-cert <file>', "client certificate with which stub zones are posted to members' resolvers")
    .option('--federation-key <file>', 'its key');
}

/** Names are the same in upper and lower case, with or without a dot at the end. */
function plainName(text: string): string {
  return text.replace(/\.$/, '').toLowerCase();
}

/** A flag that takes several values; without any it means what is said. */
function list(flags: string, description: string, without = 'none'): Option {
  return new Option(flags, description).default([], without);
}
