// The codes of `portolan doctor`. A code is never used for something else; docs/codes.md is written from this table. Pure.

export const severities = ['info', 'warning', 'error'] as const;
export type Severity = (typeof severities)[number];

export interface CodeInfo {
  readonly title: string;
  readonly severity: Severity;
  readonly means: string;
  readonly fix: string;
}

export const codes = {
  PTL0001: {
    title: 'a check could not run',
    severity: 'warning',
    means: 'An object that the check reads is not as expected. The other checks ran.',
    fix: 'Look at the object that the message names; if it is correct, report a bug.',
  },
  PTL0101: {
    title: 'the home is unreachable or not ready',
    severity: 'error',
    means:
      'The API of this cluster does not answer, so nothing about the cluster is known. Its parts keep serving what they know.',
    fix: 'Start the home (portolan up, or the API server), and check the address and the credentials in the kubeconfig.',
  },
  PTL0102: {
    title: 'the home cannot write',
    severity: 'error',
    means: 'The disk under the home is full or fails. Reads work, every write is refused.',
    fix: 'Free space on the disk of the home; writes are accepted again without a restart.',
  },
  PTL0103: {
    title: 'a permission is missing',
    severity: 'warning',
    means: 'The user of this kubeconfig may not read something that a check needs. Those checks were skipped.',
    fix: 'Use a kubeconfig with the rights of an administrator, or grant the right that the message names.',
  },
  PTL0104: {
    title: 'the home has no recent snapshot',
    severity: 'warning',
    means:
      'The last good snapshot of this home is older than a day, or there is none. If its disk is lost, so is everything that changed since.',
    fix: 'Look at the reason in the message (portolan snapshot list shows it too), give the snapshots another folder with --snapshots, or take one with portolan snapshot save.',
  },
  PTL0105: {
    title: 'a part lacks a right',
    severity: 'error',
    means:
      'The home refuses a running part something by RBAC. The part goes on with what it knew, or without what it may not read; the rest of it works.',
    fix: 'Grant the right that the message names to the account of that part: run portolan install, portolan upgrade or helm upgrade again, or apply deploy/manifests of this release.',
  },
  PTL0201: {
    title: 'the broker does not answer',
    severity: 'error',
    means: 'This cluster gets no changes of other clusters and publishes none of its own. Known services stay usable.',
    fix: 'Start the broker, and check the network from this cluster to the address in the message.',
  },
  PTL0202: {
    title: 'an agent is silent',
    severity: 'error',
    means: 'The agent of a cluster does not renew its lease. Other clusters treat its services as stale.',
    fix: 'Start portolan agent in that cluster, or read its log. Delete its Lease if that machine is gone for good.',
  },
  PTL0203: {
    title: 'a cluster is held down',
    severity: 'warning',
    means: 'The cluster came back several times in a short time. Its services are not used until it stays.',
    fix: 'Find out why its agent or its network comes and goes; the hold ends by itself.',
  },
  PTL0204: {
    title: 'the credentials for the broker end or were refused',
    severity: 'error',
    means:
      'The agent renews its token after a third of its life. This token is older than that, has expired, or is refused.',
    fix: 'Check that the agent runs and reaches the broker. If the token has expired or is refused, leave with --offline and join again.',
  },
  PTL0205: {
    title: 'the broker has lost writes',
    severity: 'warning',
    means:
      'A member found older data at the broker than it had written: the broker was restored from a backup, or a second agent runs under the id of that member. Agents publish again what is missing; members that joined after the backup have to join again. The finding ends an hour after it was noticed.',
    fix: 'Compare portolan status at the broker with the clusters that you expect, and run portolan broker token and join for those that are missing.',
  },
  PTL0207: {
    title: 'the home of a cluster does not answer its agent',
    severity: 'error',
    means:
      'The agent of a cluster renews its lease and says that its home gives no answer: the home is dead, hangs, or is cut off from the agent. Its endpoints are what the agent knew last. When this lasts for the lease time, other clusters treat them by the staleness policy.',
    fix: 'Start the home (API server) of that cluster, or restart it if it hangs, and check the network between it and its agent.',
  },
  PTL0208: {
    title: 'the cluster inventory is not kept',
    severity: 'warning',
    means:
      'The set names members that keep a ClusterProfile for each member, and they cannot: none of them lives, the broker refuses them, or another cluster manager has a profile of that name. Tools that read the inventory see too little or old conditions; traffic is not affected.',
    fix: 'For a taken name, remove or rename the profile of the other manager, or give the cluster another id. Otherwise run portolan broker init at the broker, which grants the rights and installs the definition if none is there, or name other members with --inventory-writer.',
  },
  PTL0209: {
    title: 'sealed exports do not reach or leave a cluster',
    severity: 'warning',
    means:
      'A member has no key for sealed exports, nobody has confirmed its key, another member has another key than before, or it refused records of another member: they were changed or put back to an older state. Nothing is sealed for a cluster without a trusted key, and nothing is published in the open instead. A changed key or refused records can be an attack by who runs the broker.',
    fix: 'For a key that is not confirmed or another one than before, compare the fingerprint with portolan sealing show in that cluster and give the command in the message. For refused records, ask who restored or changed the broker; portolan sealing rotate in the exporting cluster makes new ones.',
  },
  PTL0301: {
    title: 'an export has no Service to export',
    severity: 'error',
    means:
      'A ServiceExport names a Service that does not exist, or one of type ExternalName, so nothing is offered to other clusters.',
    fix: 'Create the Service, or remove the export with portolan unexport NAMESPACE/NAME.',
  },
  PTL0302: {
    title: 'exports are in conflict',
    severity: 'warning',
    means: 'Clusters export the same service with different properties. The oldest export decides.',
    fix: 'portolan explain NAMESPACE/NAME shows the fields and the winner; make them equal.',
  },
  PTL0303: {
    title: 'an export names an unknown cluster or selects nothing',
    severity: 'warning',
    means: 'An export is limited to a cluster that is no member, or a ServiceExportPolicy selects no Service.',
    fix: 'Correct the name of the cluster (portolan export --to …) or the selectors of the policy.',
  },
  PTL0304: {
    title: 'imports or exports lag',
    severity: 'error',
    means: 'What lies at the broker and what lies in this cluster differ, in two looks a few seconds apart.',
    fix: 'Check that the agent of this cluster runs and may write; read its log.',
  },
  PTL0305: {
    title: 'an exported service has no ready endpoint',
    severity: 'warning',
    means: 'The Service exists, but no endpoint of it is ready in this cluster.',
    fix: 'Start the workload, register a process (portolan register), or correct the selector of the Service.',
  },
  PTL0306: {
    title: 'a record at the broker is not counted',
    severity: 'warning',
    means: 'A member wrote a record that breaks the rules. It has no effect on other clusters.',
    fix: 'Look at the agent of that member; the message names the rule.',
  },
  PTL0401: {
    title: 'address ranges overlap',
    severity: 'error',
    means:
      'Two clusters, or a cluster and the virtual addresses of the clusterset, use the same addresses. Traffic goes to the wrong place.',
    fix: 'Change one of the ranges, publish ClusterIPs, or declare a translation for one cluster.',
  },
  PTL0402: {
    title: 'an address range is nearly used up',
    severity: 'warning',
    means:
      'More than 80 % of the addresses for imports, peers or external services are taken. New services will get none.',
    fix: 'Give the clusterset a larger range (spec.addressRanges of the ClusterSet).',
  },
  PTL0403: {
    title: 'an import names an address that is not its own',
    severity: 'error',
    means:
      'Two ServiceImports name one address, or one names an address of the clusterset that no AddressClaim gives it. The address is served for the import that its AddressClaim names, and for no other. Somebody who may write ServiceImports may be trying to get the traffic of another namespace.',
    fix: 'Find out who wrote the import that the message names (kubectl get -o yaml shows its managers), and delete it. Grant nobody but agents the right to write ServiceImports.',
  },
  PTL0404: {
    title: 'a member may have endpoints at any address',
    severity: 'info',
    means:
      'The Cluster object of a member has no allowedRanges. Other clusters take its endpoints wherever they lie, except at special addresses, in the virtual ranges of the clusterset and in their own ranges: also in the ranges of a third cluster or on the internet.',
    fix: 'Look at the ranges that the member reported when it joined (portolan status), and confirm them as admin of the clusterset with portolan broker accept ID, or set spec.allowedRanges of its Cluster. Add the addresses of its load balancers with --allowed-range if a federation publishes them.',
  },
  PTL0501: {
    title: 'a resolver is silent',
    severity: 'error',
    means: 'A DNS server of this cluster does not renew its lease. Clients that ask it may get no answer.',
    fix: 'Start portolan dns on that node, or delete its Lease if the node is gone for good.',
  },
  PTL0502: {
    title: 'a resolver answers from old data',
    severity: 'warning',
    means:
      'The resolver does not follow its home at present, or still answers from a copy on disk. Changes do not reach it.',
    fix: 'Check that the resolver reaches its home and that its account may list and watch; read its log.',
  },
  PTL0503: {
    title: 'a resolver answers otherwise than the objects say',
    severity: 'error',
    means: 'The addresses that the resolver returned for an imported service are not those of its ServiceImport.',
    fix: 'portolan dig NAME explains the answer; check that the resolver reaches the home of this cluster.',
  },
  PTL0504: {
    title: 'a resolver does not know a federation',
    severity: 'error',
    means:
      'The authority has not been able to give its address to the resolver of a member. Federated names do not resolve there.',
    fix: 'Set spec.resolver of the Cluster to an address that the authority reaches, and the nameservers of the Federation.',
  },
  PTL0505: {
    title: 'the authority of a federation is away',
    severity: 'error',
    means:
      'No authority renews its lease, or none has written the status of the Federation. Federated names are not answered.',
    fix: 'Start portolan authority, or read its log. Delete its Lease if that machine is gone for good.',
  },
  PTL0506: {
    title: 'a resolver cannot copy its names to disk',
    severity: 'warning',
    means:
      'The resolver answers, but the copy of its names in --state is old. If it starts again while its home is away, it answers from that copy, or SERVFAIL.',
    fix: 'Make room on that disk, and check that the resolver may write to the folder of --state.',
  },
  PTL0507: {
    title: 'a federated service has no address for clients of its own cluster',
    severity: 'warning',
    means:
      'Nothing in this cluster routes the cluster IP of the service: its home is embedded. It has no load balancer, no proxy here carries its clusterset IP, and its endpoints listen on other ports. The federated name leads clients here to other clusters, or nowhere.',
    fix: 'Run portolan proxy in this cluster, or give the service an address (portolan register --load-balancer).',
  },
  PTL0508: {
    title: "the cluster's CoreDNS does not ask the resolvers of Portolan",
    severity: 'warning',
    means:
      'Portolan runs resolvers behind the Service portolan-dns, and CoreDNS, which Pods ask, does not forward the zone of the clusterset to them. Names of the clusterset do not exist for Pods.',
    fix: 'Run portolan coredns, which shows the change, and portolan coredns --yes, which writes it.',
  },
  PTL0601: {
    title: 'the peering process is silent',
    severity: 'error',
    means: 'No peering process has reported lately. What is written about peers is old.',
    fix: 'Start portolan peering in this cluster, or read its log. Delete its Lease if that machine is gone for good.',
  },
  PTL0602: {
    title: 'a peer was refused',
    severity: 'error',
    means: 'One side does not accept the other, or refuses a service of it.',
    fix: 'portolan peer status NAME shows the reason; correct it, then portolan peer retry NAME.',
  },
  PTL0603: {
    title: 'a peer is away',
    severity: 'warning',
    means: 'The peer is not connected. Its services stay until the retention time is over, then they are withdrawn.',
    fix: 'Check the network to its address, and that its peering process runs.',
  },
  PTL0604: {
    title: 'a PeerExport shares nothing',
    severity: 'warning',
    means: 'The PeerExport selects no Service, or names a peer that does not exist.',
    fix: 'Correct spec.services, spec.serviceSelector or spec.peers.',
  },
  PTL0605: {
    title: 'services of a peer cannot be reached',
    severity: 'error',
    means:
      'Its catalog may be in step, but connections to its services lead nowhere: its ingress does not answer our peering process, or no Envoy of this cluster has the configuration. A warning if this cluster has never had a portolan xds, or if that is not known for sure.',
    fix: 'portolan peer status NAME shows the cause. Ask the other side about its ingress, or start an Envoy here (docs/guides/envoy.md).',
  },
  PTL0606: {
    title: 'peers cannot reach our ingress',
    severity: 'error',
    means:
      'Services are shared with this peer, no Envoy of role ingress has a configuration here, and the ingress that peers are told does not answer. A warning if this cluster has never had a portolan xds: an ingress of another make may answer others and not us.',
    fix: 'Start the ingress (portolan xds bootstrap --role ingress, or ingress.enabled of the chart), and check --ingress of portolan peering.',
  },
  PTL0701: {
    title: 'a clock is off',
    severity: 'error',
    means:
      'The clock of the home or of a part differs from that of this machine. Leases, tokens and certificates are judged wrongly.',
    fix: 'Synchronise the clocks of both machines (NTP).',
  },
  PTL0702: {
    title: 'a certificate has expired',
    severity: 'error',
    means: 'Connections that use this certificate are refused.',
    fix: 'Renew it; the message names where it lies.',
  },
  PTL0703: {
    title: 'a certificate ends soon',
    severity: 'warning',
    means: 'Less than a tenth of its life is left, and nothing has renewed it.',
    fix: 'Renew it, or check the part that should.',
  },
  PTL0801: {
    title: 'versions differ',
    severity: 'warning',
    means: 'Parts of this cluster run another version than this program.',
    fix: 'Finish the upgrade: portolan version lists the parts.',
  },
  PTL0901: {
    title: 'a connection failed',
    severity: 'error',
    means: 'A service could not be reached by its clusterset IP from a node of the cluster, or by its name from here.',
    fix: 'portolan test connectivity NAMESPACE/NAME shows which step fails.',
  },
  PTL0902: {
    title: 'a proxy is silent',
    severity: 'error',
    means: 'A node proxy or xDS server does not renew its lease. Clusterset IPs may lead nowhere on that node.',
    fix: 'Start it again, or delete its Lease if the node is gone for good.',
  },
  PTL0903: {
    title: 'an imported service cannot be reached at its address',
    severity: 'error',
    means:
      'The ServiceImport is not ready: nothing in this cluster carries connections to its address, or it has none. Its name resolves, and connections fail. A warning if this cluster has never had a proxy, and if Envoys refused a part of it or cannot hold all of it (Programmed).',
    fix: 'Run portolan proxy on each node; kubectl -n NAMESPACE describe serviceimport NAME shows the conditions Ready and Programmed with the cause.',
  },
  PTL0904: {
    title: 'an external service cannot be reached',
    severity: 'error',
    means:
      'The MeshExternalService is not accepted or not ready: it is invalid, a Secret or an address is missing, or no Envoy of this cluster has its configuration. Its name may resolve, and connections fail. A warning if this cluster has never had a portolan xds.',
    fix: 'kubectl -n portolan-system describe meshexternalservice NAME shows the conditions Accepted and Ready with the cause; portolan xds status shows the Envoys that are connected.',
  },
  PTL0905: {
    title: 'a cluster in another network is not reached',
    severity: 'error',
    means:
      'Connections to services of that cluster go through its gateways, and none takes them: it has published none, the admin of the set has not accepted its address, no gateway answers, a certificate has expired, or the gateway refuses this cluster. A warning if only some nodes of this cluster lack an Envoy that carries connections there.',
    fix: 'The message has the reason. Without a gateway: run one there (docs/guides/networks.md) and portolan broker accept CLUSTER. Refused: check that both clusters reach the broker, so that each has the root of the other. On nodes: run Envoy with portolan xds bootstrap --role sidecar.',
  },
  PTL0906: {
    title: 'calls between clusters are not limited as asked',
    severity: 'error',
    means:
      'Access is Exported or Audit, and a node does not apply it: it has no proxy, its kernel or data plane does not apply the rules, or packets cannot be attributed to a cluster because a member has no source ranges or shares them. Calls that no export allows may pass there. A warning where only some calls are affected: a silent proxy, overlapping ranges, ports of Pods with the address of their node.',
    fix: 'The message has the reason. Ranges: portolan broker accept CLUSTER --source-range. Nodes: run portolan proxy in nftables mode on each; docs/guides/access.md has every reason.',
  },
  PTL0907: {
    title: 'calls of another cluster are refused',
    severity: 'info',
    means:
      'In the last hour another cluster of the set called something here that is not exported to it. With access Audit the calls passed. Either an export is missing or too narrow, or somebody tries what is not meant for them.',
    fix: 'If the call is wanted: portolan export NAMESPACE/NAME, with --to for some clusters. docs/guides/access.md.',
  },
} as const satisfies Record<string, CodeInfo>;

export type Code = keyof typeof codes;

export function docsOf(code: Code): string {
  return `docs/codes.md#${code.toLowerCase()}`;
}

/** docs/codes.md. */
export function codesPage(): string {
  const entries = (Object.entries(codes) as [Code, CodeInfo][]).map(
    ([code, { title, severity, means, fix }]) =>
      `## ${code}\n**${title}** (${severity})\n\n${means}\n\nNext step: ${fix}\n`,
  );
  return `# Codes of portolan doctor\n\nWritten from src/doctor/codes.ts. A code is never used for something else.\n\n${entries.join('\n')}`;
}
