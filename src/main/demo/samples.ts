// The sample services of the demo: exports of each cluster, and deliberate conflicts.

export interface DemoCluster {
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  /** Loopback addresses that stand for this cluster's machines. */
  readonly podRange: string;
  readonly serviceRange: string;
}

export const demoClusters: readonly DemoCluster[] = [
  { id: 'east', region: 'north', zone: 'north-a', podRange: '127.1.0.0/16', serviceRange: '10.101.0.0/16' },
  { id: 'west', region: 'north', zone: 'north-b', podRange: '127.2.0.0/16', serviceRange: '10.102.0.0/16' },
  { id: 'south', region: 'south', zone: 'south-a', podRange: '127.3.0.0/16', serviceRange: '10.103.0.0/16' },
];

export interface Sample {
  readonly name: string;
  readonly clusters: readonly string[];
  readonly isHeadless?: boolean;
  /** The Service's port, where clusters differ. Above 1024: the demo's proxy listens on it without root. */
  readonly port: (cluster: string) => number;
  readonly sessionAffinity?: (cluster: string) => 'None' | 'ClientIP';
  /** The cluster that exports it first and so decides where clusters differ; the same in every run of the demo. */
  readonly decider?: string;
  readonly exportTo?: string;
  /** Has an address outside its cluster, so that a federation can lead others there. */
  readonly isBalanced?: boolean;
  readonly backends: number;
}

export const demoNamespace = 'shop';

export const samples: readonly Sample[] = [
  { name: 'checkout', clusters: ['east', 'west', 'south'], isBalanced: true, port: () => 8080, backends: 1 },
  { name: 'db', clusters: ['east', 'south'], isHeadless: true, port: () => 5432, backends: 2 },
  {
    name: 'cart',
    clusters: ['east', 'west'],
    decider: 'east',
    port: (cluster) => (cluster === 'east' ? 8080 : 8081),
    sessionAffinity: (cluster) => (cluster === 'east' ? 'ClientIP' : 'None'),
    backends: 1,
  },
  { name: 'reports', clusters: ['east'], exportTo: 'west', port: () => 8080, backends: 1 },
];
