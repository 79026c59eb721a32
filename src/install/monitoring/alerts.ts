// The alerts, and what to do when one fires. The rules of deploy/monitoring and docs/runbooks.md are written from this. Pure.

export interface Alert {
  readonly name: string;
  readonly expression: string;
  /** How long it must hold, as Prometheus writes durations. */
  readonly holds: string;
  readonly severity: 'critical' | 'warning';
  readonly summary: string;
  /** Consequences while it fires. */
  readonly effect: string;
  /** Steps to take, in order. */
  readonly steps: readonly string[];
  /** Code of `portolan doctor` for the same fault. */
  readonly code?: string;
}

const day = 86_400;

export const alerts: readonly Alert[] = [
  {
    name: 'PortolanPartDown',
    expression: 'up{job=~"portolan.*"} == 0',
    holds: '2m',
    severity: 'critical',
    summary: '{{ $labels.instance }} cannot be scraped',
    effect: 'A part does not run or is unreachable. Others keep serving what they know.',
    steps: [
      'Look at the state and the log of the Pod or process.',
      'If it runs, check that the network policy lets Prometheus reach its admin port.',
    ],
  },
  {
    name: 'PortolanPartNotReady',
    expression: 'portolan_part_ready == 0',
    holds: '5m',
    severity: 'warning',
    summary: '{{ $labels.instance }} runs and does not work',
    effect: 'The part answers on its admin endpoint, and what it should do is not done or is served from old data.',
    steps: ['Read the reason: `curl ADMIN/readyz`.', 'Run `portolan doctor` with the kubeconfig of that cluster.'],
  },
  {
    name: 'PortolanHomeUnreachable',
    expression: 'portolan_home_reachable == 0',
    holds: '2m',
    severity: 'critical',
    summary: '{{ $labels.part }} at {{ $labels.instance }} cannot write to its API server',
    effect: 'Changes do not arrive. The part serves what it read last.',
    steps: [
      'Check that the API server of the cluster answers.',
      'Check the network and the rights of the account of the part; its log has the error.',
    ],
    code: 'PTL0101',
  },
  {
    name: 'PortolanHomeNotWritable',
    expression: 'portolan_store_writable == 0',
    holds: '1m',
    severity: 'critical',
    summary: 'the home {{ $labels.instance }} refuses writes',
    effect: 'Reads work, every write is refused.',
    steps: ['Free space on the disk of the home; writes are accepted again without a restart.'],
    code: 'PTL0102',
  },
  {
    name: 'PortolanAuditLogNotWritable',
    expression: 'portolan_audit_log_writable == 0',
    holds: '1m',
    severity: 'critical',
    summary: 'the home {{ $labels.instance }} cannot write its audit log',
    effect:
      'Requests are answered and not recorded; with `--audit-required` writes are refused. Lines wait in memory, and are lost when there are too many.',
    steps: [
      'Free space on the disk of the audit log, or check the mode of its folder; lines that wait are then written without a restart.',
      'Look for a line of kind `Dropped` in the log: so many lines were lost.',
    ],
  },
  {
    name: 'PortolanBrokerUnreachable',
    expression: 'portolan_agent_broker_reachable == 0',
    holds: '2m',
    severity: 'critical',
    summary: 'cluster {{ $labels.cluster }} cannot reach the broker of {{ $labels.clusterset }}',
    effect: 'The cluster gets no changes of others and publishes none. Known services stay usable.',
    steps: [
      'Check that the broker runs and that this cluster reaches it.',
      'If the agent reports that the broker does not know the cluster, join again with `portolan broker token ID --renew`.',
    ],
    code: 'PTL0201',
  },
  {
    name: 'PortolanNoLeader',
    expression:
      'sum by (cluster, clusterset) (portolan_agent_leading * on (instance) group_left (cluster, clusterset) portolan_agent_broker_reachable) == 0',
    holds: '2m',
    severity: 'critical',
    summary: 'no agent of cluster {{ $labels.cluster }} leads',
    effect: 'The cluster neither exports nor imports changes.',
    steps: ['Read `/readyz` of each agent of the cluster.', 'Check that the broker answers and takes their lease.'],
    code: 'PTL0202',
  },
  {
    name: 'PortolanMemberSilent',
    expression: 'min by (member) (portolan_clusterset_member_alive) == 0',
    holds: '2m',
    severity: 'critical',
    summary: 'cluster {{ $labels.member }} does not renew its lease',
    effect: 'Other clusters treat its services as stale and, by policy, withdraw them.',
    steps: ['Start the agent of that cluster, or read its log.', 'Check the network from that cluster to the broker.'],
    code: 'PTL0202',
  },
  {
    name: 'PortolanExportInvalid',
    expression: 'portolan_clusterset_exports{state="invalid"} > 0',
    holds: '15m',
    severity: 'warning',
    summary: '{{ $value }} exports at {{ $labels.instance }} cannot be exported',
    effect: 'Other clusters do not import these services.',
    steps: ['List them with `portolan status`; their condition Valid has the reason.'],
    code: 'PTL0301',
  },
  {
    name: 'PortolanExportConflict',
    expression: 'portolan_clusterset_export_conflicts > 0',
    holds: '15m',
    severity: 'warning',
    summary: '{{ $value }} exports at {{ $labels.instance }} conflict with other clusters',
    effect: 'The oldest export decides the fields on which the clusters differ.',
    steps: ['Read the condition Conflict of the exports, and make the Services of the clusters alike.'],
    code: 'PTL0302',
  },
  {
    name: 'PortolanImportsNotReady',
    expression: 'portolan_clusterset_imports{state="not_ready"} > 0',
    holds: '15m',
    severity: 'warning',
    summary: '{{ $value }} imports at {{ $labels.instance }} cannot be used',
    effect: 'The names of these services have no address, or connections to them are not carried.',
    steps: ['List them with `portolan status`; their condition Ready has the reason.'],
  },
  {
    name: 'PortolanSlowPropagation',
    expression:
      'histogram_quantile(0.9, sum by (le) (rate(portolan_clusterset_export_to_import_seconds_bucket[10m]))) > 30',
    holds: '5m',
    severity: 'warning',
    summary: 'one in ten new exports takes more than 30 s to be imported',
    effect: 'New services appear late in other clusters.',
    steps: [
      'Look at queue depth and retries of the agents, and at the request times of the broker.',
      'Check that the clocks of the clusters agree: the time is that between two clocks.',
    ],
    code: 'PTL0304',
  },
  {
    name: 'PortolanQueueStuck',
    expression: 'min_over_time(portolan_queue_depth[10m]) > 100',
    holds: '5m',
    severity: 'warning',
    summary: 'queue {{ $labels.queue }} of {{ $labels.instance }} does not empty',
    effect: 'Changes arrive late.',
    steps: ['Read the log of the part for errors of that controller.', 'Check the answer times of its API server.'],
  },
  {
    name: 'PortolanAddressPoolNearlyFull',
    expression: 'portolan_address_pool_used_addresses / portolan_address_pool_addresses > 0.8',
    holds: '5m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of pool {{ $labels.pool }} ({{ $labels.family }}) are in use',
    effect: 'When the pool is full, new imports get no address.',
    steps: ['Give the ClusterSet a larger range.'],
    code: 'PTL0402',
  },
  {
    name: 'PortolanCertificateEnds',
    expression: `portolan_certificate_expiry_timestamp_seconds{certificate="home-authority"} - time() < ${30 * day}`,
    holds: '1h',
    severity: 'warning',
    summary: 'the certificate authority of {{ $labels.instance }} ends in {{ $value | humanizeDuration }}',
    effect: 'After its end no client can connect to the home.',
    steps: ['Replace it with `portolan api rotate-ca`, see [Operations](guides/operations.md#certificate-authority).'],
    code: 'PTL0703',
  },
  {
    name: 'PortolanCertificateOverdue',
    expression: `portolan_certificate_expiry_timestamp_seconds{certificate!~"home-authority|xds-proxy|gateway"} - time() < ${7 * day}`,
    holds: '1h',
    severity: 'warning',
    summary: 'certificate {{ $labels.certificate }} of {{ $labels.instance }} ends in {{ $value | humanizeDuration }}',
    effect:
      'After its end connections to the part are refused: names of federations, peers or proxies stop following changes.',
    steps: [
      'Read the log of the part: it renews its own certificates long before, and logs why it could not.',
      'A certificate that was given as a file or Secret (`dns-tls`, `federation-authority`, `stub-zones`, `peering`) is yours to replace. Restart the part after that; peering reads it again by itself.',
    ],
    code: 'PTL0703',
  },
  {
    name: 'PortolanProxyCertificateOverdue',
    expression: 'portolan_xds_proxy_certificates_due > 0',
    holds: '15m',
    severity: 'warning',
    summary: '{{ $value }} proxies at {{ $labels.instance }} have not renewed their certificate',
    effect: 'When a certificate ends, its proxy loses the discovery server and keeps its last configuration.',
    steps: ['Check the renewal (`portolan xds renew`) on the machines that `portolan xds status` names.'],
    code: 'PTL0703',
  },
  {
    name: 'PortolanGatewayUnreachable',
    expression: 'max by (instance, remote) (portolan_gateway_reachable) == 0',
    holds: '2m',
    severity: 'critical',
    summary: 'no gateway of cluster {{ $labels.remote }} takes connections of {{ $labels.instance }}',
    effect:
      'Services of that cluster are not reached from this one; other clusters that export them take the connections.',
    steps: [
      'Read the reason: `portolan doctor` or `portolan status` in this cluster.',
      'Check that the gateway runs, and that the firewall lets the nodes of this cluster reach its port.',
      'If it refuses this cluster: check that both clusters reach the broker, so that each has the root of the other.',
    ],
    code: 'PTL0905',
  },
  {
    name: 'PortolanAccessNotEnforced',
    expression: 'portolan_proxy_access_enforced == 0',
    holds: '2m',
    severity: 'critical',
    summary: '{{ $labels.instance }} does not limit calls of other clusters as asked',
    effect: 'Calls that no export allows may reach Pods of that node.',
    steps: [
      'Read the reason: `portolan status` or `portolan doctor` in this cluster, or `/status` of the proxy.',
      'NoSourceRanges, OverlappingRanges: the admin of the set gives the members ranges of their own (`portolan broker accept CLUSTER --source-range`).',
      'NotProved, NotWritten: read the log of the proxy; another program may have removed its table, or the kernel lacks a feature.',
      'Bypassed: the data plane of that node delivers packets past nftables; use its own policies there.',
    ],
    code: 'PTL0906',
  },
  {
    name: 'PortolanServiceFailing',
    // A service that nobody calls fails nobody.
    expression:
      '1 - sum by (namespace, service, destination_cluster) (rate(portolan_proxy_connections_total{outcome="answered"}[5m])) / (sum by (namespace, service, destination_cluster) (rate(portolan_proxy_connections_total{outcome="tried"}[5m])) > 0.1) > 0.05',
    holds: '5m',
    severity: 'warning',
    summary:
      '{{ $value | humanizePercentage }} of connections to {{ $labels.namespace }}/{{ $labels.service }} in cluster {{ $labels.destination_cluster }} fail',
    effect: 'Clients get refusals or no answer, or try again with another endpoint.',
    steps: [
      'Find out whether they are refused or not answered, and from where: `portolan observe --service NAMESPACE/NAME --to CLUSTER`.',
      'Refused: look whether the Pods listen on the target port, and whether an export with `access` leaves the clients out.',
      'Not answered: run `portolan doctor` in both clusters; a firewall or a missing route is likely if all endpoints of the cluster are silent.',
    ],
  },
  {
    name: 'PortolanGatewayCertificateOverdue',
    // It lives for 24 hours and is renewed after 16.
    expression: `portolan_certificate_expiry_timestamp_seconds{certificate="gateway"} - time() < ${day / 6}`,
    holds: '15m',
    severity: 'warning',
    summary: 'the certificate of the gateway, made by {{ $labels.instance }}, ends in {{ $value | humanizeDuration }}',
    effect: 'After its end other clusters make no new connections to the gateway.',
    steps: ['Read the log of portolan xds: it renews the certificate by itself, and logs why it could not.'],
  },
  {
    name: 'PortolanTokenEnds',
    // Agents renew a token when two thirds of its life are left, however long that is.
    expression: 'portolan_agent_token_expiry_timestamp_seconds - time() < portolan_agent_token_lifetime_seconds / 3',
    holds: '15m',
    severity: 'warning',
    summary: 'the token of {{ $labels.instance }} for the broker ends in {{ $value | humanizeDuration }}',
    effect: 'After its end the broker refuses the agent.',
    steps: ['Check that the agent runs and reaches the broker: it renews the token by itself.'],
    code: 'PTL0204',
  },
  {
    name: 'PortolanDnsFailures',
    expression:
      'sum by (zone) (rate(portolan_dns_queries_total{rcode="SERVFAIL"}[5m])) / sum by (zone) (rate(portolan_dns_queries_total[5m])) > 0.05',
    holds: '5m',
    severity: 'critical',
    summary: '{{ $value | humanizePercentage }} of answers for {{ $labels.zone }} are SERVFAIL',
    effect: 'Clients cannot resolve names of that zone.',
    steps: [
      'Ask `portolan explain NAME` for a name of the zone.',
      'Of zone other: check the servers of `--forward` (`portolan_dns_upstream_up`).',
    ],
  },
  {
    name: 'PortolanPeerDisconnected',
    expression: 'portolan_peering_connected == 0',
    holds: '5m',
    severity: 'warning',
    summary: 'no stream with peer {{ $labels.peer }} ({{ $labels.side }})',
    effect: 'Changes of shared services do not arrive; known ones stay until they are stale.',
    steps: ['Read `portolan peer status`.', 'Check the network and the trust bundle of the peer.'],
    code: 'PTL0603',
  },
];
