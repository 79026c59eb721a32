// What the page of figures is made of: each bench with what its figures mean to who runs a set.

import type { Plot } from './plots.ts';

export interface Bench {
  readonly name: string;
  readonly title: string;
  /** For people: what was run, and what the figures mean to them. */
  readonly about: string;
  readonly script: string;
  readonly args: readonly string[];
  readonly plots: readonly Plot[];
}

/** `bench:scale` writes its sizes without separators. */
const services = (name: string) => new RegExp(`^100 clusters, (\\d+) services: ${name}$`);
const endpoints = (name: string) => new RegExp(`^(\\d+) endpoints in 50 clusters: ${name}$`);
const clusters = (name: string) => new RegExp(`^(\\d+) clusters: ${name}$`);
const arrival = 'one endpoint changed, until it is in the home';

export const benches: readonly Bench[] = [
  {
    name: 'scale',
    title: 'A set of a hundred clusters',
    about:
      'An agent, its home and the broker as processes; the other members have their records at the broker and live. Joining is bounded by the writes of the home that imports: an address, an import and its slices for each service, each on disk. After that a change costs what it changes, however much is there. An agent that starts again reads everything once; until it has, the home goes on with what it holds.',
    script: 'bench/scale.ts',
    args: [],
    plots: [
      {
        name: 'memory-by-services',
        title: 'Memory against imported services',
        x: 'services in 100 clusters',
        unit: 'MB',
        series: [
          { label: 'agent', figure: services('memory of its agent') },
          { label: 'its home', figure: services('memory of its home') },
          { label: 'broker', figure: services('memory of the broker') },
        ],
      },
      {
        name: 'change-by-services',
        title: 'One endpoint changed, until another home has it',
        x: 'services in 100 clusters',
        unit: 'ms',
        series: [
          { label: 'p50', figure: services(`${arrival}, p50`) },
          { label: 'p99', figure: services(`${arrival}, p99`) },
        ],
      },
      {
        name: 'join-by-services',
        title: 'Joining and starting again',
        x: 'services in 100 clusters',
        unit: 's',
        series: [
          { label: 'joined', figure: services('joined, all imported') },
          { label: 'started again', figure: services('agent started again, until a change made since is in its home') },
        ],
      },
      {
        name: 'bytes-by-endpoints',
        title: 'Bytes of one endpoint’s change to a reader',
        x: 'endpoints of the service',
        unit: 'B',
        series: [{ label: 'bytes', figure: endpoints('one endpoint changed, bytes to a reader') }],
      },
    ],
  },
  {
    name: 'growth',
    title: 'One cluster more',
    about:
      'The broker’s cost of one member more. At rest it is heartbeats: the more members there are, the less often each renews, so that all together renew ten times a second at most. Under load it is sending each change to every member. A broker that is too small for its set shows it by its CPU first, then by the time until a change has reached the last cluster.',
    script: 'bench/growth.ts',
    args: ['--seconds', '15'],
    plots: [
      {
        name: 'broker-cpu-by-clusters',
        title: 'CPU of the broker',
        x: 'clusters',
        unit: '% of a core',
        series: [
          { label: 'at rest', figure: clusters('idle, CPU of the broker') },
          { label: '10 changes/s', figure: clusters('10 changes/s, CPU of the broker') },
        ],
      },
      {
        name: 'change-by-clusters',
        title: 'A change until the last cluster has it',
        x: 'clusters',
        unit: 'ms',
        series: [
          { label: 'p50', figure: clusters('change to the last cluster, p50') },
          { label: 'p99', figure: clusters('change to the last cluster, p99') },
        ],
      },
    ],
  },
  {
    name: 'mcs',
    title: 'A change from cluster to cluster',
    about:
      'From a write in one home to the slice in the others, every process of its own over TLS, and the same rules in one process. What a person waits for after a rollout.',
    script: 'bench/mcs.ts',
    args: ['--seconds', '15', '--rounds', '40'],
    plots: [],
  },
  {
    name: 'proxy',
    title: 'The kernel’s rules',
    about:
      'Time to load the rules of a node, one endpoint’s change, and what a packet pays on its way, beside the layout that kube-proxy writes. A node is as large as its rules: they are loaded once at its start and changed in place afterwards.',
    script: 'bench/proxy.ts',
    args: ['--rounds', '300'],
    plots: [],
  },
  {
    name: 'access',
    title: 'Who may call',
    about: 'The kernel’s table of exported tuples: its load, a change, and what it adds to each packet.',
    script: 'bench/access.ts',
    args: [],
    plots: [],
  },
  {
    name: 'dns',
    title: 'Names',
    about:
      'Questions a second of one core, and the time of an answer at a given load, beside Knot and CoreDNS in the same run. A resolver that is too small answers late before it answers nothing: watch `portolan_dns_query_seconds`.',
    script: 'bench/dns.ts',
    args: [],
    plots: [],
  },
  {
    name: 'xds',
    title: 'Proxies',
    about:
      'An xDS server with a hundred proxies over mutual TLS. The first configuration is the expensive moment: after a restart all proxies come at once.',
    script: 'bench/xds.ts',
    args: [],
    plots: [],
  },
  {
    name: 'peering',
    title: 'Peers',
    about:
      'Catalogs between companies: every service is on disk before it is acknowledged, so the disk’s own writes are the floor.',
    script: 'bench/peering.ts',
    args: ['--quick'],
    plots: [],
  },
  {
    name: 'api',
    title: 'A home',
    about:
      'The embedded API server beside plain puts into etcd on the same disk. Its memory follows what it holds, and its start reads all of it.',
    script: 'bench/api.ts',
    args: [],
    plots: [],
  },
];
