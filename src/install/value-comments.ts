// The default values as a file for people: each with its meaning. Pure.

import { defaultValues, type PartName, partNames } from './values.ts';

type Stringify = (value: unknown) => string;

const general: Readonly<Record<string, string>> = {
  image: 'Image of our parts. Without a tag it follows the version of the chart; a tag or a digest pins it.',
  imagePullPolicy: 'Always, IfNotPresent or Never; empty leaves it to Kubernetes.',
  imagePullSecrets: 'Secrets in portolan-system with credentials of registries, such as [{name: registry}].',
  envoyImage:
    'Image of the ingress, of the gateway and of the Envoys of nodes; a digest behind it (@sha256:...) pins it.',
  logLevel: 'debug, info, warn or error.',
  listenAddress: 'Address on which Pods listen: "[::]" where they have no IPv4 address.',
  serviceMonitor: 'A ServiceMonitor for each part; needs the definitions of the Prometheus operator.',
  rightsOnly: 'Only namespaces, accounts and rights, for parts that run outside this cluster.',
  adminFrom: 'NetworkPolicy peers that may reach the admin ports (health, metrics); empty allows all.',
};

/** The same in every part. */
const ofEachPart: Readonly<Record<string, string>> = {
  enabled: 'Whether it is installed.',
  replicas: 'Number of Pods.',
  cpu: 'Requested CPU, such as 50m or 1.',
  memory: 'Requested memory and its limit, such as 256Mi.',
  cpuLimit: 'Limit of CPU; empty sets none.',
  nodeSelector: 'Labels of nodes that may run it.',
  affinity: 'Affinity of its Pods.',
  tolerations: 'Tolerations of its Pods. Parts on every node tolerate all taints if it is empty.',
  podAnnotations: 'Annotations of its Pods.',
  extraArgs: 'Further arguments of its container.',
  extraEnv: 'Further environment of its container, such as [{name: HTTPS_PROXY, value: ...}].',
  from: 'NetworkPolicy peers that may reach its ports; empty allows all.',
  egress: 'NetworkPolicy egress rules; [{}] allows everything.',
  serviceType: 'LoadBalancer, NodePort or ClusterIP.',
};

const ofParts: Readonly<Record<PartName, Readonly<Record<string, string>> & { readonly about: string }>> = {
  agent: {
    about: 'Exports and imports services, between this cluster and the broker.',
    writeServices: 'The right to write Services: for FederatedServices, and for clusterSetIP: derived.',
  },
  dns: {
    about: 'Resolver of the cluster for clusterset.local, stub zones and peers.',
    workload: 'Deployment, or DaemonSet for a resolver on every node.',
    clusterIP: 'Address of its Service, which CoreDNS asks; empty lets the cluster choose.',
    forward: 'Nameserver for all other names; empty refuses them.',
    clusterId: 'The id of the cluster; empty takes the one that it joined with.',
    clients: 'Ranges of clients that may ask; empty allows private and loopback addresses.',
    lameduck: 'Seconds that a resolver goes on answering after it was told to end.',
    stubAdvertise: 'Where authorities of federations post stub zones, IP[:PORT]; empty takes none.',
    stubServiceType: 'Type of the Service behind that address.',
  },
  proxy: {
    about: "A node's clusterset IPs in the kernel, by nftables.",
    services: 'Carries the cluster IPs of Services too, on nodes without kube-proxy.',
  },
  peering: {
    about: 'Server and client of other meshes.',
    trustDomain: 'Trust domain of this mesh, such as acme.example.',
    advertise: 'Address by which peers reach this mesh, HOST:PORT.',
  },
  authority: {
    about: 'Authority of a federation.',
    federation: 'Its name.',
    clusterset: 'The clusterset at the broker.',
    brokerSecret: 'A Secret whose key kubeconfig leads to the broker.',
  },
  xds: { about: 'Discovery server of Envoys and proxyless gRPC.' },
  ingress: { about: 'The Envoy that takes connections of peers.' },
  envoy: { about: 'The Envoy of each node, for external services and services of peers.' },
  gateway: {
    about: 'The Envoy that takes connections of clusters in other networks.',
    drainSeconds:
      'Seconds that a gateway waits at most for open connections after it was told to end; those that are left end then.',
  },
  dashboard: {
    about: 'Web page of the clusterset.',
    tlsSecret: 'A Secret with tls.crt and tls.key.',
    host: 'Its name in browsers.',
  },
};

/** The meaning of a value by its path, such as dns.clusterId; undefined if nothing is written about it. */
export function commentOf(path: string): string | undefined {
  const [part = '', field] = path.split('.');
  if (field === undefined) return general[part] ?? ofParts[part as PartName]?.about;
  return ofParts[part as PartName]?.[field] ?? ofEachPart[field];
}

/** Fields that all parts have are explained once, at the first part. */
export function commentedValues(stringify: Stringify): string {
  const explained = new Set<string>();
  const lines = Object.entries(defaultValues).flatMap(([key, value]) => {
    const about = `# ${commentOf(key)}`;
    if (!(partNames as readonly string[]).includes(key)) return [about, field(key, value, stringify)];
    const fields = Object.entries(value as object).flatMap(([name, one]) => {
      const comment = commentOf(`${key}.${name}`);
      const isKnown = explained.has(name) && comment === ofEachPart[name];
      explained.add(name);
      const text = `  ${field(name, one, stringify)}`;
      return isKnown ? [text] : [`  # ${comment}`, text];
    });
    return ['', about, `${key}:`, ...fields];
  });
  return `${lines.join('\n')}\n`;
}

function field(key: string, value: unknown, stringify: Stringify): string {
  const isPlain = typeof value !== 'object' || value === null;
  return isPlain ? stringify({ [key]: value }).trimEnd() : `${key}: ${JSON.stringify(value)}`;
}
