// For each alert, series that make it fire and then make it stop, as promtool writes them: a value each minute.

export interface AlertCase {
  readonly series: Readonly<Record<string, string>>;
  /** Minutes at which it fires, and at which it does not any more. */
  readonly firesAt: number;
  readonly endsAt: number;
}

const flips = (series: string, bad: number | string, good: number | string, firesAt = 20): AlertCase => ({
  series: { [series]: `${bad}x60 ${good}x60` },
  firesAt,
  endsAt: 100,
});
const [hour, day] = [3_600, 86_400];

export const alertCases: Readonly<Record<string, AlertCase>> = {
  PortolanPartDown: flips('up{job="portolan"}', 0, 1),
  PortolanPartNotReady: flips('portolan_part_ready', 0, 1),
  PortolanHomeUnreachable: flips('portolan_home_reachable{part="dns"}', 0, 1),
  PortolanHomeNotWritable: flips('portolan_store_writable', 0, 1),
  PortolanAuditLogNotWritable: flips('portolan_audit_log_writable', 0, 1),
  PortolanBrokerUnreachable: flips('portolan_agent_broker_reachable{cluster="west"}', 0, 1),
  PortolanNoLeader: {
    series: {
      'portolan_agent_leading{instance="a"}': '0x60 1x60',
      'portolan_agent_leading{instance="b"}': '0x120',
      'portolan_agent_broker_reachable{instance="a",cluster="west",clusterset="prod"}': '1x120',
      'portolan_agent_broker_reachable{instance="b",cluster="west",clusterset="prod"}': '1x120',
    },
    firesAt: 20,
    endsAt: 100,
  },
  PortolanMemberSilent: {
    series: {
      'portolan_clusterset_member_alive{instance="a",member="west"}': '0x60 1x60',
      'portolan_clusterset_member_alive{instance="a",member="east"}': '1x120',
    },
    firesAt: 20,
    endsAt: 100,
  },
  PortolanExportInvalid: flips('portolan_clusterset_exports{state="invalid"}', 2, 0),
  PortolanExportConflict: flips('portolan_clusterset_export_conflicts', 1, 0),
  PortolanImportsNotReady: flips('portolan_clusterset_imports{state="not_ready"}', 1, 0),
  // Sixty imports a minute that take between 60 and 120 s, then none.
  PortolanSlowPropagation: {
    series: {
      'portolan_clusterset_export_to_import_seconds_bucket{le="60"}': '0x120',
      'portolan_clusterset_export_to_import_seconds_bucket{le="120"}': '0+60x60 3600x60',
      'portolan_clusterset_export_to_import_seconds_bucket{le="+Inf"}': '0+60x60 3600x60',
    },
    firesAt: 30,
    endsAt: 100,
  },
  PortolanQueueStuck: flips('portolan_queue_depth{queue="import"}', 500, 0, 30),
  PortolanAddressPoolNearlyFull: {
    series: {
      'portolan_address_pool_used_addresses{pool="clusterset",family="IPv4"}': '210x60 100x60',
      'portolan_address_pool_addresses{pool="clusterset",family="IPv4"}': '256x120',
    },
    firesAt: 20,
    endsAt: 100,
  },
  // Time begins at 0 in promtool.
  PortolanCertificateEnds: {
    series: {
      'portolan_certificate_expiry_timestamp_seconds{certificate="home-authority"}': `${20 * day}x80 ${400 * day}x60`,
    },
    firesAt: 70,
    endsAt: 100,
  },
  PortolanCertificateOverdue: {
    series: {
      'portolan_certificate_expiry_timestamp_seconds{certificate="peering"}': `${3 * day}x80 ${400 * day}x60`,
      'portolan_certificate_expiry_timestamp_seconds{certificate="xds-proxy"}': `${3 * day}x140`,
    },
    firesAt: 70,
    endsAt: 100,
  },
  PortolanProxyCertificateOverdue: flips('portolan_xds_proxy_certificates_due', 1, 0),
  PortolanGatewayUnreachable: flips('portolan_gateway_reachable{remote="east",gateway="192.0.2.1:15443"}', 0, 1),
  PortolanAccessNotEnforced: flips('portolan_proxy_access_enforced', 0, 1),
  PortolanServiceFailing: {
    series: {
      'portolan_proxy_connections_total{namespace="shop",service="web",destination_cluster="west",outcome="tried"}':
        '0+60x120',
      'portolan_proxy_connections_total{namespace="shop",service="web",destination_cluster="west",outcome="answered"}':
        '0+50x60 3060+60x60',
      'portolan_proxy_connections_total{namespace="shop",service="idle",destination_cluster="west",outcome="tried"}':
        '1x120',
      'portolan_proxy_connections_total{namespace="shop",service="idle",destination_cluster="west",outcome="answered"}':
        '0x120',
    },
    firesAt: 20,
    endsAt: 100,
  },
  PortolanGatewayCertificateOverdue: {
    series: {
      'portolan_certificate_expiry_timestamp_seconds{certificate="gateway"}': `${3 * hour}x60 ${day}x60`,
    },
    firesAt: 20,
    endsAt: 100,
  },
  // One of a week with 20 hours left, and one of two hours that is renewed after a third of them.
  PortolanTokenEnds: {
    series: {
      'portolan_agent_token_expiry_timestamp_seconds{instance="a"}': `${20 * hour}x60 ${8 * day}x60`,
      'portolan_agent_token_lifetime_seconds{instance="a"}': `${7 * day}x120`,
      'portolan_agent_token_expiry_timestamp_seconds{instance="b"}': '7200x39 9600x39 12000x39',
      'portolan_agent_token_lifetime_seconds{instance="b"}': '7200x120',
    },
    firesAt: 20,
    endsAt: 100,
  },
  PortolanDnsFailures: {
    series: {
      'portolan_dns_queries_total{zone="clusterset.local",rcode="SERVFAIL"}': '0+10x60 600x60',
      'portolan_dns_queries_total{zone="clusterset.local",rcode="NOERROR"}': '0+60x120',
    },
    firesAt: 20,
    endsAt: 100,
  },
  PortolanPeerDisconnected: flips('portolan_peering_connected{peer="north",side="consumer"}', 0, 1),
};

/** A file for `promtool test rules`. */
export function promtoolTests(rules: string): object {
  return {
    rule_files: [rules],
    evaluation_interval: '1m',
    tests: Object.entries(alertCases).map(([name, { series, firesAt, endsAt }]) => ({
      name,
      interval: '1m',
      input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
      promql_expr_test: [
        { expr: firing(name), eval_time: `${firesAt}m`, exp_samples: [{ labels: '{}', value: 1 }] },
        { expr: firing(name), eval_time: `${endsAt}m`, exp_samples: [] },
      ],
    })),
  };
}

const firing = (name: string) => `count(ALERTS{alertname="${name}",alertstate="firing"})`;
