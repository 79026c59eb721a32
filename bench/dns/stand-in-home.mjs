// For `npm run bench:dns`: a home with made-up services that exist only while they are listed, so that a resolver can be
// measured beside a hundred thousand of them. Answers lists in pages and watches; changes endpoints when told to, a line of
// JSON on standard input each. Plain JavaScript, told how many services by its argument; with
// `no-ips` behind it none of them has an address of the clusterset.

import { createServer } from 'node:http';

const services = Number(process.argv[2]);
const hasIps = process.argv[3] !== 'no-ips';
const clusters = ['east', 'west', 'south'];
const revision = { next: 10 };
const sliceWatches = new Set();

const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://home');
  const kind = /\/(services|serviceimports|endpointslices|configmaps|peerservices|meshexternalservices)$/.exec(
    url.pathname,
  )?.[1];
  if (kind === undefined) return response.writeHead(404).end();
  response.setHeader('content-type', 'application/json');
  if (url.searchParams.has('watch')) return watch(kind, response);
  list(kind, url.searchParams, response);
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port, pid: process.pid })));

process.stdin.setEncoding('utf8');
let rest = '';
process.stdin.on('data', (text) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const line of lines) change(JSON.parse(line));
});
process.stdin.on('end', () => process.exit(0));

function watch(kind, response) {
  response.flushHeaders();
  if (kind !== 'endpointslices') return;
  sliceWatches.add(response);
  response.on('close', () => sliceWatches.delete(response));
}

function change({ service, address }) {
  revision.next += 1;
  const event = `{"type":"MODIFIED","object":${sliceText(service * clusters.length, address, revision.next)}}\n`;
  for (const response of sliceWatches) response.write(event);
}

function list(kind, query, response) {
  const total = { serviceimports: services, endpointslices: services * clusters.length }[kind] ?? 0;
  const textOf = kind === 'serviceimports' ? importText : sliceText;
  const start = Number(query.get('continue') ?? 0);
  const end = Math.min(total, start + Number(query.get('limit') ?? total));
  const items = [];
  for (let i = start; i < end; i++) items.push(textOf(i));
  const more = end < total ? `,"continue":"${end}"` : '';
  const listKind = {
    services: 'ServiceList',
    serviceimports: 'ServiceImportList',
    endpointslices: 'EndpointSliceList',
    configmaps: 'ConfigMapList',
    peerservices: 'PeerServiceList',
    meshexternalservices: 'MeshExternalServiceList',
  };
  response.end(
    `{"kind":"${listKind[kind]}","apiVersion":"v1","metadata":{"resourceVersion":"10"${more}},"items":[${items.join()}]}`,
  );
}

function importText(i) {
  return `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"svc-${i}","namespace":"ns-${i % 100}","uid":"0b3f5f8e-7c7e-4b43-9d35-${String(i).padStart(12, '0')}","resourceVersion":"9","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app.kubernetes.io/managed-by":"portolan"}},"spec":{"type":"ClusterSetIP","ips":[${ipOf(i)}],"ports":[{"name":"http","port":80,"protocol":"TCP"}],"ipFamilies":["IPv4"]},"status":{"clusters":[{"cluster":"east"},{"cluster":"west"},{"cluster":"south"}]}}`;
}

function sliceText(n, address = addressOf(n), version = 9) {
  const i = Math.floor(n / clusters.length);
  const cluster = clusters[n % clusters.length];
  return `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"svc-${i}-${cluster}","namespace":"ns-${i % 100}","uid":"5d0f5f8e-7c7e-4b43-9d35-${String(n).padStart(12, '0')}","resourceVersion":"${version}","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"multicluster.kubernetes.io/service-name":"svc-${i}","multicluster.kubernetes.io/source-cluster":"${cluster}","endpointslice.kubernetes.io/managed-by":"portolan.dev"},"ownerReferences":[{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","name":"svc-${i}","uid":"0b3f5f8e-7c7e-4b43-9d35-${String(i).padStart(12, '0')}"}]},"addressType":"IPv4","ports":[{"name":"http","port":80,"protocol":"TCP"}],"endpoints":[{"addresses":["${address}"],"conditions":{"ready":true,"serving":true,"terminating":false},"zone":"${cluster}-a"}]}`;
}

/** As by default each has an address of the clusterset; only those whose endpoints are changed answer with endpoints. */
function ipOf(i) {
  return !hasIps || i % 97 === 0 ? '' : `"243.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}"`;
}

function addressOf(n) {
  return `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
}
