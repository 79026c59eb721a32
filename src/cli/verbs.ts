// The commands in the order of the help, each with its description. The code of a command is loaded only when it is used.

export const verbs = {
  demo: 'run a broker and three clusters with sample services',
  up: 'run all parts of one cluster on the embedded API server',
  api: 'run the embedded API server, as the home of a cluster or as a broker',
  agent: 'run the controllers of a cluster, which sync its home with the broker',
  dns: 'run the DNS server: resolver of a cluster, authority of a federation, or both',
  dig: 'resolve a name and explain the answer',
  peering: 'run the peering server and client',
  peer: 'manage the meshes that share services with this one',
  xds: 'run the xDS server for Envoy and gRPC clients',
  proxy: 'run the node proxy, which routes clusterset IPs to ready endpoints by nftables',
  test: 'check the clusterset from this machine',
  register: 'register a process, such as one on a VM, as an endpoint of a Service',
  deregister: 'remove a registered process from its Service',
  broker: 'create a clusterset and manage its members',
  join: 'join this cluster to a clusterset',
  leave: 'remove this cluster from its clusterset',
  export: 'export a Service of this cluster to the clusterset',
  unexport: 'stop exporting a Service of this cluster',
  drain: 'stop new connections to a cluster, or to a service in this cluster',
  status: 'show the clusters, leases, services, conflicts and lag of the clusterset',
  explain: 'show each field of a service, which cluster exports what, and which value won',
  plan: 'preview the effect of exports, services and export policies in a file',
  doctor: 'check one or several clusters: what is wrong, what it means, what to do',
  install: 'install the parts of Portolan in a Kubernetes cluster',
  upgrade: 'change an installation to this version and these values',
  uninstall: 'remove the parts of Portolan from a Kubernetes cluster; keeps definitions and your objects',
  version: 'show the versions of this program, of the home and of the parts that report there',
  completion: 'print a completion script for a shell',
} as const;

export type Verb = keyof typeof verbs;
