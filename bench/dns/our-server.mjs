// The server side of `npm run bench:dns`, as a process of its own: compiled code, a catalog filled with made-up services, and
// the DNS server over it. Plain JavaScript, because stripping types would be measured too. Told what to do by JSON in argv.

import { pathToFileURL } from 'node:url';

const setup = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(`${setup.dist}/${path}`).href);
const { createRealWorld } = await load('base/real/world.js');
const { createLog } = await load('base/log.js');
const { Catalog } = await load('catalog/catalog.js');
const { FederationTable } = await load('catalog/federation-table.js');
const { startDns } = await load('dns/server.js');
const { stayCompact } = await load('base/real/collect-garbage.js');
const { readCounters } = await load('dns/metrics/observe.js');

const world = createRealWorld();
const log = createLog({ clock: world.clock, level: 'warn', write: (line) => process.stderr.write(line) });
const clusters = ['east', 'west', 'south'];
const catalog = new Catalog({
  clock: world.clock,
  timers: world.timers,
  cluster: { id: 'north', zone: 'n1', region: 'eu' },
});
const federation = new FederationTable({ table: catalog.table });

for (let i = 0; i < setup.services; i++) addService(i);
for (let i = 0; i < (setup.federated ?? 0); i++) {
  clusters.forEach((cluster, c) =>
    federation.putText(
      `/fed/ns-${i % 100}/svc-${i}/${cluster}`,
      JSON.stringify({ externalIP: address(100 + c, i), clusterIP: address(10 + c, i), zone: `z${c}`, region: 'eu' }),
    ),
  );
}
catalog.setSynced('imports');
catalog.setSynced('services');
federation.setSynced();

// As `portolan dns` once its first list is read.
stayCompact();
const server = await startDns({
  world,
  log,
  catalog,
  federations: [federation],
  listen: { hosts: ['127.0.0.1'], port: setup.port ?? 0 },
  workers: setup.workers,
  stubZones: setup.stubZones,
  forward: setup.upstream ? { nameservers: [setup.upstream] } : undefined,
  trusted: { ranges: ['127.0.0.0/8'], identities: [] },
});

// Answers questions of the bench on standard input, a line each.
process.stdin.setEncoding('utf8');
let rest = '';
process.stdin.on('data', (text) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const line of lines) answer(JSON.parse(line));
});
process.stdin.on('end', () => process.exit(0));
console.log(JSON.stringify({ port: server.udpPort, pid: process.pid }));

function answer(request) {
  if (request.ask === 'shares') {
    const counts = server
      .counters()
      .map((memory) => readCounters([memory]).byZoneAndRcode.reduce((sum, { count }) => sum + count, 0));
    console.log(JSON.stringify({ counts }));
  }
}

function addService(i) {
  const name = `svc-${i}`;
  const namespace = `ns-${i % 100}`;
  catalog.upsertServiceImport({
    metadata: { name, namespace, resourceVersion: String(i) },
    spec: { type: 'ClusterSetIP', ips: [], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  });
  // With three healthy clusters and none of them local, an answer would hold one cluster's address in turn: three addresses
  // an answer come from one cluster with three endpoints.
  catalog.upsertEndpointSlice(slice(i, 0, ...clusters.map((_, c) => address(10 + c, i))));
}

function slice(i, cluster, ...addresses) {
  const name = `svc-${i}`;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${clusters[cluster]}`,
      namespace: `ns-${i % 100}`,
      resourceVersion: '1',
      labels: {
        'multicluster.kubernetes.io/service-name': name,
        'multicluster.kubernetes.io/source-cluster': clusters[cluster],
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    endpoints: addresses.map((ip) => ({ addresses: [ip], conditions: { ready: true } })),
  };
}

function address(first, i) {
  return `${first}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
}
