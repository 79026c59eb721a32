// The Grafana dashboards as a short description: rows of panels with their queries. dashboard-json.ts writes them out. Pure.

export interface Panel {
  readonly title: string;
  /** As Grafana names units. */
  readonly unit: 'short' | 's' | 'bytes' | 'reqps' | 'Bps' | 'percentunit' | 'dtdurations';
  /** Legend and expression. */
  readonly queries: readonly (readonly [legend: string, expression: string])[];
}

export interface Dashboard {
  readonly file: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

const quantile = (rank: number, histogram: string, by = 'le') =>
  `histogram_quantile(${rank}, sum by (${by}) (rate(portolan_${histogram}_bucket[$__rate_interval])))`;
const quantiles = (histogram: string): Panel['queries'] => [
  ['median', quantile(0.5, histogram)],
  ['99 %', quantile(0.99, histogram)],
];

const clusterset: Dashboard = {
  file: 'clusterset.json',
  title: 'Portolan clusterset',
  panels: [
    {
      title: 'Members alive',
      unit: 'short',
      queries: [['{{member}}', 'min by (member) (portolan_clusterset_member_alive)']],
    },
    {
      title: 'Broker and home reachable',
      unit: 'short',
      queries: [
        ['broker from {{cluster}}', 'min by (cluster) (portolan_agent_broker_reachable)'],
        ['home from {{part}} {{instance}}', 'portolan_home_reachable'],
      ],
    },
    { title: 'Parts ready', unit: 'short', queries: [['{{instance}}', 'portolan_part_ready']] },
    {
      title: 'Versions',
      unit: 'short',
      queries: [['{{part}} {{version}}', 'count by (part, version) (portolan_build_info)']],
    },
    {
      title: 'Exports by state',
      unit: 'short',
      queries: [['{{state}}', 'sum by (state) (portolan_clusterset_exports)']],
    },
    {
      title: 'Imports by state',
      unit: 'short',
      queries: [['{{state}}', 'sum by (state) (portolan_clusterset_imports)']],
    },
    { title: 'Conflicts', unit: 'short', queries: [['{{instance}}', 'portolan_clusterset_export_conflicts']] },
    { title: 'Time from export to import', unit: 's', queries: quantiles('clusterset_export_to_import_seconds') },
    { title: 'Time from export to DNS', unit: 's', queries: quantiles('dns_export_to_answer_seconds') },
    { title: 'Queue depth', unit: 'short', queries: [['{{instance}} {{queue}}', 'portolan_queue_depth']] },
    {
      title: 'Address pools in use',
      unit: 'percentunit',
      queries: [
        ['{{instance}} {{pool}} {{family}}', 'portolan_address_pool_used_addresses / portolan_address_pool_addresses'],
      ],
    },
    {
      title: 'Time until certificates and tokens end',
      unit: 'dtdurations',
      queries: [
        ['{{certificate}} of {{instance}}', 'portolan_certificate_expiry_timestamp_seconds - time()'],
        ['token of {{instance}}', 'portolan_agent_token_expiry_timestamp_seconds - time()'],
      ],
    },
  ],
};

const by = (labels: string, metric: string) => `sum by (${labels}) (rate(portolan_${metric}[$__rate_interval]))`;
const failures = (labels: string) =>
  `${by(labels, 'proxy_connections_total{outcome="tried"}')} - ${by(labels, 'proxy_connections_total{outcome="answered"}')}`;
const clusters = 'source_cluster, destination_cluster';

const traffic: Dashboard = {
  file: 'traffic.json',
  title: 'Portolan traffic',
  panels: [
    {
      title: 'New connections by service',
      unit: 'reqps',
      queries: [['{{namespace}}/{{service}}', by('namespace, service', 'proxy_connections_total{outcome="tried"}')]],
    },
    {
      title: 'Connections that fail, by service',
      unit: 'reqps',
      queries: [
        ['{{namespace}}/{{service}} in {{destination_cluster}}', failures('namespace, service, destination_cluster')],
      ],
    },
    {
      title: 'Connections that are refused or reset',
      unit: 'reqps',
      queries: [
        [
          '{{namespace}}/{{service}} {{outcome}}',
          by('namespace, service, outcome', 'proxy_connections_total{outcome=~"refused|reset"}'),
        ],
      ],
    },
    {
      title: 'New connections between clusters',
      unit: 'reqps',
      queries: [
        ['{{source_cluster}} to {{destination_cluster}}', by(clusters, 'proxy_connections_total{outcome="tried"}')],
      ],
    },
    {
      title: 'Connections that fail, between clusters',
      unit: 'reqps',
      queries: [['{{source_cluster}} to {{destination_cluster}}', failures(clusters)]],
    },
    {
      title: 'Bytes by service',
      unit: 'Bps',
      queries: [['{{namespace}}/{{service}} {{direction}}', by('namespace, service, direction', 'proxy_bytes_total')]],
    },
    {
      title: 'Bytes between clusters',
      unit: 'Bps',
      queries: [['{{source_cluster}} to {{destination_cluster}}', by(clusters, 'proxy_place_bytes_total')]],
    },
    {
      title: 'Bytes between zones',
      unit: 'Bps',
      queries: [
        [
          '{{source_region}} {{source_zone}} to {{destination_region}} {{destination_zone}}',
          by('source_region, source_zone, destination_region, destination_zone', 'proxy_place_bytes_total'),
        ],
      ],
    },
    {
      title: 'Bytes between regions',
      unit: 'Bps',
      queries: [
        [
          '{{source_region}} to {{destination_region}}',
          by('source_region, destination_region', 'proxy_place_bytes_total'),
        ],
      ],
    },
  ],
};

const dns: Dashboard = {
  file: 'dns.json',
  title: 'Portolan DNS',
  panels: [
    {
      title: 'Answers by zone and rcode',
      unit: 'reqps',
      queries: [['{{zone}} {{rcode}}', 'sum by (zone, rcode) (rate(portolan_dns_queries_total[$__rate_interval]))']],
    },
    {
      title: 'Time per answer, 99 %',
      unit: 's',
      queries: [['{{zone}}', quantile(0.99, 'dns_query_seconds', 'le, zone')]],
    },
    { title: 'Time from a change to its answer', unit: 's', queries: quantiles('dns_change_to_answer_seconds') },
    {
      title: 'Cache',
      unit: 'reqps',
      queries: [['{{result}}', 'sum by (result) (rate(portolan_dns_cache_total[$__rate_interval]))']],
    },
    {
      title: 'Packets without an answer',
      unit: 'reqps',
      queries: [['{{reason}}', 'sum by (reason) (rate(portolan_dns_packets_dropped_total[$__rate_interval]))']],
    },
    {
      title: 'Threads replaced',
      unit: 'short',
      queries: [['{{instance}}', 'increase(portolan_dns_worker_restarts_total[$__range])']],
    },
  ],
};

const parts: Dashboard = {
  file: 'parts.json',
  title: 'Portolan homes, proxies and peers',
  panels: [
    {
      title: 'Requests of homes',
      unit: 'reqps',
      queries: [
        ['{{instance}} {{code}}', 'sum by (instance, code) (rate(portolan_api_requests_total[$__rate_interval]))'],
      ],
    },
    {
      title: 'Request time of homes, 99 %',
      unit: 's',
      queries: [['{{verb}}', quantile(0.99, 'api_request_duration_seconds', 'le, verb')]],
    },
    { title: 'Time until a batch is on disk', unit: 's', queries: quantiles('store_batch_duration_seconds') },
    { title: 'Size of stores', unit: 'bytes', queries: [['{{instance}}', 'portolan_store_disk_bytes']] },
    {
      title: 'Services of node proxies',
      unit: 'short',
      queries: [
        ['{{instance}}', 'portolan_proxy_services'],
        ['{{instance}} with a problem', 'portolan_proxy_problems'],
      ],
    },
    {
      title: 'Envoys',
      unit: 'short',
      queries: [
        ['{{instance}}', 'portolan_xds_proxies'],
        ['{{instance}} refused resources', 'portolan_xds_refused_resources'],
      ],
    },
    {
      title: 'Gateways of other networks reached',
      unit: 'short',
      queries: [['{{remote}} {{gateway}}', 'max by (remote, gateway) (portolan_gateway_reachable)']],
    },
    {
      title: 'Calls of other clusters that no export allows',
      unit: 'short',
      queries: [
        [
          '{{source_cluster}} at {{namespace}}/{{service}}',
          'sum by (source_cluster, namespace, service) (rate(portolan_proxy_access_refused_packets_total[$__rate_interval]))',
        ],
      ],
    },
    { title: 'Peers connected', unit: 'short', queries: [['{{peer}} {{side}}', 'portolan_peering_connected']] },
    { title: 'Services behind', unit: 'short', queries: [['{{peer}} {{side}}', 'portolan_peering_lag_services']] },
    {
      title: 'CPU',
      unit: 'percentunit',
      queries: [['{{instance}}', 'rate(process_cpu_seconds_total{job=~"portolan.*"}[$__rate_interval])']],
    },
    { title: 'Memory', unit: 'bytes', queries: [['{{instance}}', 'process_resident_memory_bytes{job=~"portolan.*"}']] },
    {
      title: 'Delay of the event loop, 99 %',
      unit: 's',
      queries: [['{{instance}}', 'nodejs_eventloop_lag_p99_seconds{job=~"portolan.*"}']],
    },
  ],
};

export const dashboards: readonly Dashboard[] = [clusterset, traffic, dns, parts];
