// Situations besides the usual flows in which parts need a right. They follow each other.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '../../src/external/testing/pem.ts';
import { peeringNamespace, proxyTokenAudience, xdsNamespace, xdsRootsName } from '../../src/kube/objects/ours.ts';
import { ownAddress } from '../support/own-address.ts';
import { runPortolan } from '../support/portolan.ts';
import { addService, checkout, type FlowWorld, startPeering, until } from './flows.ts';
import { type FlowHome, startFlowHome, system } from './homes.ts';
import { refuseEverything } from './refusing-proxy.ts';

const own = 'portolan.dev/v1alpha1';
const namespaces = ['--secrets-namespace', xdsNamespace, '--peering-namespace', peeringNamespace];

export const situations: [string, (world: FlowWorld) => Promise<void>][] = [
  ['a proxy of a node with an Envoy -> reports', startProxy],
  ['a policy -> exports what it selects, also after it changed', policy],
  ['a FederatedService -> placed and changed', federatedService],
  ['external services at the broker and at home -> copied with their Secrets, named, changed', externalServices],
  ['wishes about an import and a shift of its traffic -> judged', wishes],
  ['a peer -> shares again', sharedAgain],
  ['Envoys that refuse everything -> their objects say so', refusals],
  ['xds where roots of another are -> written anew', otherRoots],
  ['an authority of a federation -> reports, and its zone is known to all resolvers', startAuthority],
  ['parts are asked from another machine -> they check the ticket', askWithTickets],
  ['more members than observers -> the observers report', observers],
  ['an export sealed for west -> west has it, and what was seen of it is kept', sealedExport],
  ['calls are counted, a policy says who may call -> judged, and nodes without a proxy are noticed', limitedAccess],
  ['the dashboard -> shows all homes to its viewer', dashboard],
  ['all connections break -> everything follows again', cuts],
  ['an import, its slices, claims and properties are changed by hand -> put right', repairs],
  ['the options of the clusterset change -> stored for resolvers and proxies', options],
  ['a member is silent -> noticed, and when it comes back', silence],
  ['a second agent -> takes over when the first ends, and renews an old token', takeOver],
  ['the leader Lease of a member is deleted at the broker -> created again', deletedLease],
  ['a cluster joins again with a new token -> the same member', joinAgain],
  ['everything is taken away -> gone', takenAway],
];

/** Output of kubectl; empty if it fails. */
function look(home: FlowHome, line: string): string {
  try {
    return home.kubectl(line);
  } catch {
    return '';
  }
}
const has = (home: FlowHome, line: string) => look(home, `${line} -o name`) !== '';

async function startProxy({ east, parts }: FlowWorld): Promise<void> {
  const words = ['--mode', 'userspace', '--range', '127.77.0.0/16', '--node', 'one', '--envoy', '--envoy-uid', '1337'];
  const proxy = parts.start(east, 'proxy', ['proxy', ...words]);
  await until('the proxy is ready', () => proxy.said('ready') !== '');
}

async function policy({ east }: FlowWorld): Promise<void> {
  addService(east, 'search', '10.1.0.9');
  east.kubectl('label service search -n shop export=yes');
  const select = { namespaces: ['shop'], serviceSelector: { matchLabels: { export: 'yes' } } };
  const apply = (more: object) =>
    east.apply({
      apiVersion: own,
      kind: 'ServiceExportPolicy',
      metadata: { name: 'shop' },
      spec: { ...select, ...more },
    });
  apply({});
  await until('exported', () => has(east, 'get serviceexport search -n shop'));
  await until('imported', () => has(east, 'get serviceimport search -n shop'));
  apply({ onStale: 'Keep' });
  await until('changed', () => look(east, 'get serviceexport search -n shop -o json').includes('Keep'));
}

async function wishes({ west }: FlowWorld): Promise<void> {
  const condition = (what: string) => look(west, `get ${what} -o jsonpath={.status.conditions[*].type}`);
  const clusters = [
    { clusters: ['east'], weight: 9 },
    { clusters: ['west'], weight: 1 },
  ];
  const spec = { namespaces: ['shop'], services: ['checkout'], clusters };
  west.apply({ apiVersion: own, kind: 'ServiceImportPolicy', metadata: { name: 'shop' }, spec });
  await until('the policy is judged', () => condition('serviceimportpolicy shop') !== '');
  const shift = { service: 'checkout', from: 'east', to: 'west', steps: [50, 100], every: '1h' };
  const metadata = { name: 'checkout', namespace: 'shop' };
  west.apply({ apiVersion: own, kind: 'TrafficShift', metadata, spec: shift });
  const phase = () => look(west, 'get trafficshift checkout -n shop -o jsonpath={.status.phase}');
  await until('the shift is judged', () => phase() !== '');
  west.kubectl('delete trafficshift checkout -n shop');
  west.kubectl('delete serviceimportpolicy shop');
}

async function federatedService({ broker, west }: FlowWorld): Promise<void> {
  const place = (port: number) =>
    broker.apply({
      apiVersion: own,
      kind: 'FederatedService',
      metadata: { name: 'cart.shop', namespace: 'prod' },
      spec: { clusters: ['west'], template: { spec: { selector: { app: 'cart' }, ports: [{ name: 'http', port }] } } },
    });
  place(80);
  await until('placed', () => has(west, 'get service cart -n shop'));
  place(81);
  await until('changed', () => look(west, 'get service cart -n shop -o jsonpath={.spec.ports[0].port}') === '81');
}

const external = (
  name: string,
  namespace: string,
  more: { value?: string; tls?: object; annotations?: object } = {},
) => ({
  apiVersion: own,
  kind: 'MeshExternalService',
  metadata: { name, namespace, labels: { team: 'data' }, annotations: more.annotations },
  spec: {
    match: [{ type: 'InternalVIP', value: more.value, port: 27017, protocol: 'tcp' }],
    destination: { type: 'Regular', endpoints: [{ address: '192.0.2.7', port: 27017 }], tls: more.tls },
  },
});

/** Name of the service that west shares. */
const lateName = 'stock.shop.west.example';

async function externalServices({ broker, east }: FlowWorld): Promise<void> {
  const group = { kind: 'Group', name: 'system:serviceaccounts:prod-members', apiGroup: 'rbac.authorization.k8s.io' };
  broker.kubectl('create role shared -n prod --verb=get --resource=secrets --resource-name=pki');
  broker.kubectl(`create rolebinding shared -n prod --role=shared --group=${group.name}`);
  const secret = (text: string) =>
    broker.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pki', namespace: 'prod' },
      stringData: { 'ca.crt': text },
    });
  secret('first');
  const generator = (template: string) => ({
    apiVersion: own,
    kind: 'HostnameGenerator',
    metadata: { name: 'names', namespace: 'prod' },
    spec: { targetRef: { kind: 'MeshExternalService', tags: { team: 'data' } }, template },
  });
  const tls = { enabled: true, caCert: { secret: 'pki' } };
  const annotations = { 'portolan.dev/share-secrets': 'true' };
  broker.apply(external('mongo', 'prod', { tls, annotations }), generator('{{ name }}.ext.example'));
  // The second takes a name before a peer's service wants it.
  east.apply(external('redis', system, { value: 'redis.ext.example' }), external('early', system, { value: lateName }));
  // Some workloads alone use its key, so xds looks for their Pods.
  const authority = createAuthority();
  const { certificate, key } = authority.issue({ kind: 'client' });
  const given = { caCert: authority.certificate, clientCert: certificate, clientKey: key };
  const pair = Object.fromEntries(Object.entries(given).map(([field, inlineString]) => [field, { inlineString }]));
  const keyed = { ...pair, usedBy: [{ namespace: 'shop', serviceAccount: 'default' }] };
  east.apply(external('keyed', system, { value: 'keyed.ext.example', tls: keyed }));
  const vip = (name: string) => look(east, `get mes ${name} -n ${system} -o jsonpath={.status.vips[0].ip}`);
  await until('named', () => vip('mongo.broker') !== '');
  await until('its own too', () => vip('redis').startsWith('242.'));
  const secrets = () => look(east, 'get secrets -n portolan-external -o json');
  await until('the Secret is copied', () => secrets().includes(Buffer.from('first').toString('base64')));
  secret('second');
  broker.apply(generator('{{ name }}.other.example'));
  broker.kubectl('label mes mongo -n prod more=yes');
  await until('and follows', () => secrets().includes(Buffer.from('second').toString('base64')));
  await until('changed', () => has(east, `get mes -n ${system} -l more=yes`));
  await until('renamed', () => look(east, `get mes mongo.broker -n ${system} -o json`).includes('mongo.other.example'));
}

async function sharedAgain({ east, west, parts }: FlowWorld): Promise<void> {
  await east.type('peer export shop/billing --to west');
  await until('shared', () => has(west, `get peerservices -n ${system}`));
  const ports = [{ name: 'more', port: 81, appProtocol: 'grpc' }];
  east.kubectl(['patch', 'service', 'billing', '-n', 'shop', '-p', JSON.stringify({ spec: { ports } })]);
  await until('changed', () => look(west, `get peerservices -n ${system} -o json`).includes('grpc'));
  // The other way too, so that each is owner and consumer.
  addService(west, 'stock', '10.2.0.9');
  await west.type('peer export shop/stock --to east');
  await until('shared back', () => look(east, `get peerservices -n ${system} -o json`).includes('early'));
  const spec = { services: ['billing'], peers: ['nobody'] };
  east.apply({ apiVersion: own, kind: 'PeerExport', metadata: { name: 'vain', namespace: 'shop' }, spec });
  await until('an export to an unknown peer says so', () =>
    look(east, 'get peerexport vain -n shop -o json').includes('False'),
  );
  // Under another name its card and its certificate change. While it starts it frees addresses that were released long ago;
  // the agent would do that too.
  const owner = { kind: 'PeerService', namespace: system, name: 'gone' };
  const claim = { address: '241.255.0.9', owner, releasedAt: '2020-01-01T00:00:00Z' };
  const [first] = parts.of(east, 'peering');
  const [agent] = parts.of(east, 'agent');
  agent!.child.kill('SIGSTOP');
  await parts.end(first!);
  east.apply({ apiVersion: own, kind: 'AddressClaim', metadata: { name: claim.address }, spec: claim });
  const second = startPeering(
    { east, west, parts } as FlowWorld,
    east,
    '--replicated',
    '--advertise',
    'mesh.example:8008',
  );
  await until('it runs again', () => second.said('ready') !== '');
  await until('the address is free', () => !has(east, `get addressclaim ${claim.address}`));
  agent!.child.kill('SIGCONT');
}

/** As Pods of Envoys start: the bootstrap is written with a token of their Pod for xds alone. */
async function refusals({ east, parts }: FlowWorld): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-refusing-'));
  const xds = parts.start(east, 'xds', ['xds', '--listen', '127.0.0.1:0', ...namespaces]);
  await until('xds is ready', () => xds.said('ready') !== '');
  const ends: (() => void)[] = [];
  for (const [account, role] of [
    ['ingress', 'ingress'],
    ['envoy', 'sidecar'],
  ] as const) {
    const to = join(directory, role);
    const pod = `portolan-${account}-one`;
    east.apply({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: pod, namespace: system } },
      spec: { serviceAccountName: `portolan-${account}`, containers: [{ name: 'envoy', image: 'none' }] },
    });
    const bound = `--audience ${proxyTokenAudience} --bound-object-kind Pod --bound-object-name ${pod}`;
    const [token, roots] = [join(directory, `${role}.token`), join(directory, 'ca.crt')];
    writeFileSync(token, east.kubectl(`create token portolan-${account} -n ${system} ${bound}`));
    const { data } = JSON.parse(east.kubectl(`get configmap ${xdsRootsName} -n ${system} -o json`));
    writeFileSync(roots, data['ca.crt']);
    const words = ['xds', 'bootstrap', '--role', role, '--name', pod, '--server', `127.0.0.1:${xds.said('ready')}`];
    const proof = ['--token-file', token, '--authority-file', roots];
    const made = await runPortolan([...words, '--directory', to, ...proof]);
    if (made.code !== 0) throw new Error(made.err);
    const names = ['peering/trust/east', 'peering/trust/west'];
    ends.push(refuseEverything({ ...accessIn(to, `127.0.0.1:${xds.said('ready')}`), names }));
  }
  const listeners = ['checkout.shop.svc.clusterset.local'];
  const sidecar = accessIn(join(directory, 'sidecar'), `127.0.0.1:${xds.said('ready')}`);
  ends.push(refuseEverything({ ...sidecar, names: [], listeners }));
  const said = (what: string) => look(east, `get ${what} -o json`).includes('RefusedByProxy');
  const inSystem = [`mes -n ${system}`, `peerservices -n ${system}`, `peers -n ${system}`];
  for (const what of [...inSystem, 'serviceimports -n shop', 'peerexports -n shop', 'services -n shop'])
    await until(`${what} says so`, () => said(what));
  for (const end of ends) end();
  rmSync(directory, { recursive: true, force: true });
}

function accessIn(directory: string, target: string) {
  const bootstrap = readFileSync(join(directory, 'envoy.json'), 'utf8');
  const identity = readFileSync(join(directory, 'identity.json'), 'utf8');
  const pem = (text: string, kind: RegExp) =>
    JSON.parse(`"${new RegExp(`-----BEGIN ${kind.source}-----.*?-----END ${kind.source}-----\\\\n`).exec(text)![0]}"`);
  return {
    target,
    nodeId: JSON.parse(bootstrap).node.id as string,
    tls: {
      authority: pem(bootstrap, /CERTIFICATE/),
      certificate: pem(identity, /CERTIFICATE/),
      key: pem(identity, /(?:EC )?PRIVATE KEY/),
    },
  };
}

/** As after a restored home: what it publishes is there, and is not its own. */
async function otherRoots({ west, parts }: FlowWorld): Promise<void> {
  const metadata = { name: xdsRootsName, namespace: system };
  west.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'ca.crt': 'other' } });
  const xds = parts.start(west, 'xds', ['xds', '--listen', '127.0.0.1:0', ...namespaces]);
  await until('xds of west is ready', () => xds.said('ready') !== '');
  await until('its roots', () => look(west, `get configmap ${xdsRootsName} -n ${system} -o json`).includes('BEGIN'));
}

/** It has no right at home: it reads the broker, with an account that is made for it, and posts its zone to resolvers. */
export async function startAuthority({ broker, east, parts }: FlowWorld): Promise<void> {
  await broker.type('federation create world --nameserver 10.0.0.53 --clusterset prod');
  broker.apply(tsigSecret('resolvers'), tsigSecret('zone'));
  const provider = { type: 'RFC2136', rfc2136: { server: '127.0.0.1:9', tsigSecret: { name: 'zone' } } };
  const spec = { source: { tsigKeys: [{ name: 'resolvers' }] }, public: { domain: 'example.com', provider } };
  broker.kubectl(['patch', 'federation', 'world', '-n', 'prod', '--type=merge', '-p', JSON.stringify({ spec })]);
  const directory = mkdtempSync(join(tmpdir(), 'portolan-authority-'));
  const kubeconfig = join(directory, 'broker.kubeconfig');
  writeFileSync(kubeconfig, await broker.type('federation kubeconfig world --clusterset prod'));
  const secret = 'portolan-authority-broker';
  east.kubectl(`create secret generic ${secret} -n ${system} --from-file=kubeconfig=${kubeconfig}`);
  const given = readFileSync(kubeconfig, 'utf8');
  const kept = ['--broker-kubeconfig', kubeconfig, '--broker-kubeconfig-from', secret];
  const federation = ['--federation', 'world', ...kept, '--clusterset', 'prod'];
  const authority = parts.start(east, 'authority', ['authority', ...federation, '--listen', '127.0.0.1:0']);
  await until('it is ready', () => /^ready$/m.test(authority.log()));
  await until('it reports', () => has(broker, `get leases -n ${system} -l portolan.dev/part=authority`));
  const held = () =>
    Buffer.from(look(east, `get secret ${secret} -n ${system} -o jsonpath={.data.kubeconfig}`), 'base64');
  await until('its token is renewed and kept', () => !['', given].includes(held().toString()));
  // A loopback address is believed from the admin alone.
  for (const id of ['east', 'west']) {
    const reported = () => look(broker, `get cluster.portolan.dev ${id} -n prod -o jsonpath={.status.resolver}`);
    await until('its resolver is reported', () => reported().includes('https:'));
    const patch = JSON.stringify({ spec: { resolver: JSON.parse(reported()) } });
    broker.kubectl(['patch', 'cluster.portolan.dev', id, '-n', 'prod', '--type=merge', '-p', patch]);
  }
  const status = () => look(broker, 'get federation world -n prod -o jsonpath={.status.stubZones}');
  await until('both resolvers have its zone', () => status().match(/"Posted"/g)?.length === 2);
  const zones = () => look(east, `get configmap portolan-stub-zones -n ${system} -o json`);
  await until('its zone is shared', () => zones().includes('10.0.0.53'));
  const change = JSON.stringify({ spec: { nameservers: ['10.0.0.54'] } });
  broker.kubectl(['patch', 'federation', 'world', '-n', 'prod', '--type=merge', '-p', change]);
  await until('and follows', () => zones().includes('10.0.0.54'));
  const notes = () => look(broker, 'get configmap portolan-public-zones.world -n prod -o json');
  await until('the public zone is noted', () => notes().includes('example.com'));
  const other = JSON.stringify({ spec: { public: { domain: 'example.org' } } });
  broker.kubectl(['patch', 'federation', 'world', '-n', 'prod', '--type=merge', '-p', other]);
  await until('and another', () => notes().includes('example.org'));
  rmSync(directory, { recursive: true, force: true });
}

const tsigSecret = (name: string) => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'prod' } },
  stringData: { name: `${name}.example`, algorithm: 'hmac-sha256', secret: Buffer.alloc(32, 7).toString('base64') },
});

async function askWithTickets({ broker, east, parts }: FlowWorld): Promise<void> {
  broker.kubectl(`create serviceaccount portolan-admin-caller -n ${system}`);
  for (const part of ['agent', 'dns', 'proxy', 'peering', 'xds', 'authority']) {
    const { port } = new URL(parts.of(east, part).at(-1)!.said('admin'));
    const audience = `portolan-admin/http://127.0.0.1:${port}`;
    // The authority has no other home than the broker.
    const ticket = (part === 'authority' ? broker : east).kubectl([
      'create',
      'token',
      'portolan-admin-caller',
      '-n',
      system,
      '--audience',
      audience,
    ]);
    const ask = async (headers: Record<string, string>) =>
      (await fetch(`http://${ownAddress()}:${port}/status`, { headers })).status;
    await until(`${part} answers with a ticket`, async () => (await ask({ 'portolan-ticket': ticket })) === 200);
    if ((await ask({})) !== 401) throw new Error(`${part} answers without a ticket`);
  }
}

/** In a set of three everybody observes, and nobody reports. */
async function observers({ broker, more, parts }: FlowWorld): Promise<void> {
  for (const name of ['north', 'south']) {
    const home = await startFlowHome('embedded', name);
    more.push(home);
    await home.type(`install --rights-only --set dns.clusterId=${name}`);
    const token = await broker.type(`broker token ${name} --clusterset prod`);
    await home.type(`join ${token.trim().split(/\s+/).at(-1)}`);
    parts.start(home, 'agent', ['agent']);
  }
  await until('observers report', () => has(broker, 'get livenessreports -A'));
}

/** Agents make their keys as soon as the set allows it; the admin confirms them. */
async function sealedExport({ broker, east, west }: FlowWorld): Promise<void> {
  await broker.type('broker init --clusterset prod --sealed-exports Allowed');
  for (const id of ['east', 'west']) {
    const accepted = () => broker.type(`broker accept ${id} --clusterset prod --no-ranges`);
    await until(`the key of ${id} is confirmed`, async () => (await accepted()).includes('portolan sealing show'));
  }
  addService(east, 'ledger', '10.1.0.12');
  const ready = () => look(east, 'get serviceexport ledger -n shop -o json');
  await east.type('export shop/ledger --to west --seal');
  await until('sealed for west', () => ready().includes('exported to west only, sealed"'));
  await until('west imports it', () => has(west, 'get serviceimport ledger -n shop'));
  const kept = () => look(west, 'get secret portolan-sealed-memory -n portolan-sealing -o jsonpath={.data.east}');
  await until('west keeps what it has seen', () => kept() !== '');
  const before = kept();
  await east.type('sealing rotate');
  await until('and what it has seen of the next key', () => !['', before].includes(kept()));
  await east.type('unexport shop/ledger --wait --timeout 90');
}

async function limitedAccess({ broker, east }: FlowWorld): Promise<void> {
  await broker.type('broker init --clusterset prod --access Audit');
  const from = [{ cluster: 'west' }];
  const metadata = { name: 'shop', namespace: 'shop' };
  east.apply({ apiVersion: own, kind: 'ServiceAccessPolicy', metadata, spec: { from } });
  const judged = () => look(east, 'get serviceaccesspolicy shop -n shop -o jsonpath={.status.conditions[*].type}');
  await until('the policy is judged', () => judged().includes('Enforced'));
  const enforced = () => look(broker, 'get cluster.portolan.dev west -n prod -o json');
  await until('who does not limit calls is named', () => enforced().includes('AccessEnforced'));
  await until('nodes are listed', () =>
    east.audit().some(({ verb, objectRef }) => verb === 'list' && objectRef?.resource === 'nodes'),
  );
  east.kubectl('delete serviceaccesspolicy shop -n shop');
  await broker.type('broker init --clusterset prod --access Open');
}

/** Its own account is asked for nothing; it reads with the token of who has signed in. The page stays open. */
async function dashboard({ broker, east, west, parts }: FlowWorld): Promise<void> {
  const kubeconfigs = ['--kubeconfig', broker.kubeconfig, west.kubeconfig];
  const words = ['dashboard', '--listen', '127.0.0.1:0', ...kubeconfigs];
  const server = { account: 'portolan-dashboard-server', isWithoutAdmin: true };
  const page = parts.start(east, 'dashboard', words, server);
  const { out } = await runPortolan(['dashboard', 'token', '--hours', '1', ...kubeconfigs, east.kubeconfig]);
  await until('the page is served', () => page.said('ready') !== '');
  const headers = { authorization: `Bearer ${out.trim()}` };
  const stream = await fetch(`${page.said('ready')}/api/stream`, { headers });
  let rows = '';
  const read = async () => {
    for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) rows += chunk;
  };
  // Until the dashboard ends.
  read().catch(() => {});
  await until('all homes are shown', () => (rows.match(/"state":"live"/g)?.length ?? 0) >= 3);
  const figures = () => fetch(`${page.said('ready')}/api/figures`, { headers });
  const isAsked = (home: FlowHome, resource: string) =>
    home.audit().some(({ objectRef: about }) => about?.resource === resource && about.subresource === 'proxy');
  // The parts of west run as in Pods: no Pod is there, but a ticket for it is made.
  await until('resolvers are asked by way of their home', async () => {
    await figures();
    await fetch(`${page.said('ready')}/api/ask?cluster=west&name=${checkout}&type=A`, { headers });
    return isAsked(east, 'services') && isAsked(west, 'pods');
  });
}

async function cuts({ broker, east, west }: FlowWorld): Promise<void> {
  await until('its resolver is reported', () =>
    look(broker, 'get cluster.portolan.dev east -n prod -o json').includes('https://127.0.0.1:'),
  );
  for (const home of [broker, east, west]) home.cut();
  addService(east, 'later', '10.1.0.10');
  await east.type('export shop/later --wait --timeout 150');
  await until('imported', () => has(west, 'get serviceimport later -n shop'));
  setNotReady(east, 'later');
  const slices = 'get endpointslices -n shop -l multicluster.kubernetes.io/service-name=later -o json';
  await until('its endpoint is not ready in the other cluster', () => !/"ready": true/.test(look(west, slices)));
}

function setNotReady(home: FlowHome, pod: string): void {
  const body = JSON.stringify({ status: { conditions: [{ type: 'Ready', status: 'False' }] } });
  home.kubectl(['patch', 'pod', pod, '-n', 'shop', '--subresource=status', '-p', body]);
}

async function repairs({ west }: FlowWorld): Promise<void> {
  const slices = 'endpointslices -n shop -l multicluster.kubernetes.io/service-name=checkout';
  west.kubectl(`label ${slices} multicluster.kubernetes.io/source-cluster=nobody --overwrite`);
  await until('corrected', () => !has(west, `get ${slices},multicluster.kubernetes.io/source-cluster=nobody`));
  west.kubectl('delete serviceimport checkout -n shop');
  await until('made anew', () => has(west, 'get serviceimport checkout -n shop') && has(west, `get ${slices}`));
  for (const name of ['cluster.clusterset.k8s.io', 'clusterset.k8s.io']) {
    const value = () => look(west, `get clusterproperty ${name} -o jsonpath={.spec.value}`);
    const before = value();
    west.kubectl(['patch', 'clusterproperty', name, '--type=merge', '-p', '{"spec":{"value":"other"}}']);
    await until('put back', () => value() === before);
    west.kubectl(`delete clusterproperty ${name}`);
    await until('made anew', () => value() === before);
  }
}

async function options({ broker, east, west }: FlowWorld): Promise<void> {
  const spec = { dns: { ttlSeconds: 9 }, ports: 'intersection', addressHoldSeconds: 1 };
  broker.kubectl(['patch', 'clusterset', 'prod', '-n', 'prod', '--type=merge', '-p', JSON.stringify({ spec })]);
  for (const home of [east, west])
    await until('stored', () => look(home, `get configmaps -n ${system} -o json`).includes('9'));
}

async function silence({ broker, west, east, parts }: FlowWorld): Promise<void> {
  const [agent] = parts.of(west, 'agent');
  agent!.child.kill('SIGSTOP');
  const verdicts = () => look(east, `get configmap portolan-lease-verdicts -n ${system} -o jsonpath={.data.west}`);
  await until('it is noticed', () => verdicts().includes('stale'));
  // Whoever follows the verdicts looks at them again.
  east.cut();
  agent!.child.kill('SIGCONT');
  await until('and that it is back', () => !verdicts().includes('stale'));
  const [judge] = parts.of(east, 'agent');
  judge!.child.kill('SIGSTOP');
  await until('the next member reports in its place', () => has(broker, 'get livenessreports -n prod-m-west'));
  judge!.child.kill('SIGCONT');
  await until('and stops when it is back', () => !has(broker, 'get livenessreports -n prod-m-west'));
}

async function takeOver({ east, parts }: FlowWorld): Promise<void> {
  const [first] = parts.of(east, 'agent');
  const second = parts.start(east, 'agent', ['agent']);
  await until('the second waits', () => second.said('ready') !== '');
  const token = () => look(east, `get secret portolan-broker -n ${system} -o jsonpath={.data.token}`);
  const before = token();
  const old = Buffer.from('2020-01-01T00:00:00Z').toString('base64');
  const patch = JSON.stringify({ data: { 'token-issued-at': old } });
  east.kubectl(['patch', 'secret', 'portolan-broker', '-n', system, '-p', patch]);
  await parts.end(first!);
  await until('it leads and has a new token', () => token() !== before);
}

async function deletedLease({ broker, east, west }: FlowWorld): Promise<void> {
  for (const { name } of [east, west]) {
    const owner = () =>
      look(broker, `get lease ${name} -n prod-members -o jsonpath={.metadata.ownerReferences[0].name}`);
    broker.kubectl(`delete lease ${name} -n prod-members`);
    await until('created again, with its owner', () => owner() === `prod-m-${name}`);
  }
}

async function joinAgain({ broker, east }: FlowWorld): Promise<void> {
  const token = await broker.type('broker token east --clusterset prod --renew');
  await east.type(`join ${token.trim().split(/\s+/).at(-1)} --pod-cidr 10.1.0.0/16 --region eu`);
}

async function takenAway({ broker, east, west }: FlowWorld): Promise<void> {
  east.kubectl('delete serviceexportpolicy shop');
  await until('the export is taken back', () => !has(east, 'get serviceexport search -n shop'));
  await until('and its import', () => !has(east, 'get serviceimport search -n shop'));
  broker.kubectl('delete federatedservice cart.shop -n prod');
  await until('the Service is taken away', () => !has(west, 'get service cart -n shop'));
  broker.kubectl('delete mes,hostnamegenerators --all -n prod');
  await until('the copy is gone', () => !has(east, `get mes mongo.broker -n ${system}`));
  await west.type('peer remove east');
  await until('services of the peer are gone', () => !has(west, `get peerservices -n ${system}`));
  for (const home of [east, west])
    await until('released addresses are free', () => !look(home, 'get addressclaims -o json').includes('releasedAt'));
}
