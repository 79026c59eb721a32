// Configuration for a cluster's own CoreDNS to ask our resolver for our zones: as a block of a Corefile, as the
// ConfigMap `coredns-custom` of AKS, and as configuration values of the EKS add-on. Pure.

export const stubKinds = ['coredns', 'aks', 'eks'] as const;
export type StubKind = (typeof stubKinds)[number];

export interface StubRequest {
  /** Addresses of the Service portolan-dns. */
  readonly addresses: readonly string[];
  readonly zones: readonly string[];
  /** Of the server that clients ask; 53 if absent. */
  readonly port?: string;
  /** The Corefile that EKS has; its add-on replaces the whole. */
  readonly corefile?: string;
}

type Stringify = (value: unknown) => string;

export const defaultZones: readonly string[] = ['clusterset.local', 'peers.local', 'federation'];

export function stubText(kind: StubKind, request: StubRequest, stringify: Stringify): string {
  if (kind === 'coredns') return corefileBlock(request);
  if (kind === 'aks') return stringify(aksConfigMap(request));
  return `${JSON.stringify({ corefile: `${request.corefile ?? eksCorefile}${corefileBlock(request)}` }, undefined, 2)}\n`;
}

/**
 * SERVFAIL is not cached: resolvers answer it until their first sync. Without them CoreDNS serves its last answers; it asks
 * them first, because an expired NXDOMAIN would hide a new export.
 */
export function corefileBlock({ addresses, zones, port = '53' }: StubRequest): string {
  return `${zones.map((zone) => `${zone}:${port}`).join(' ')} {
    errors
    cache {
        success 9984 5
        denial 9984 5
        servfail 0
        serve_stale 1h verify
    }
    forward . ${addresses.join(' ')} {
        policy sequential
        health_check 1s
        max_fails 2
    }
}
`;
}

/** Keys that end with .server are added to the Corefile as they are. */
function aksConfigMap(request: StubRequest): object {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'coredns-custom', namespace: 'kube-system' },
    data: { 'portolan.server': corefileBlock(request) },
  };
}

/** As the add-on has it by default. */
const eksCorefile = `.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
`;
