// The demo's broker and clusters: each a home of its own, joined the way a person would join them, with an agent whose way
// to the broker can be cut. One authority, made anew with every demo, signs the certificates of their stub-zone endpoints.

import { parseServers } from '../../base/http.ts';
import type { Log } from '../../base/log.ts';
import type { Parts } from '../../base/parts.ts';
import { type AdminEndpoint, startAdminEndpoint } from '../../base/real/admin-endpoint.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { sleep, type World } from '../../base/world.ts';
import { type CertificateUse, type Credentials, issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { findNamesCopy, ownerOf } from '../../catalog/copy/copy-keeper.ts';
import { brokerInit } from '../../cli/clusterset/broker-init.ts';
import { brokerToken } from '../../cli/clusterset/broker-token.ts';
import { join } from '../../cli/clusterset/join.ts';
import type { ClusterSetDeps } from '../../cli/with-home.ts';
import { createAgent } from '../../clusterset/agent/agent.ts';
import { requireMembership } from '../../clusterset/explain/consult.ts';
import { parseJoinToken } from '../../clusterset/membership/join-token.ts';
import type { StubEndpoint } from '../../dns/config/config.ts';
import { type Federation, federationType } from '../../federation/kinds/federation.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { type AgentRoleState, measureAgentRole, notReady } from '../agent/role.ts';
import { type Authority, startAuthority } from '../authority/part.ts';
import { type DnsAdminOptions, startDnsAdmin } from '../dns/admin.ts';
import { dnsCertificates } from '../dns/certificates.ts';
import { type Resolver, startResolver } from '../dns/part.ts';
import { type Home, startHome } from '../home/part.ts';
import { type CutTransport, cutTransport } from './cut-transport.ts';
import { startDemoExternal } from './external.ts';
import type { DemoRange } from './range.ts';
import type { DemoCluster } from './samples.ts';

export interface DemoDeps extends ClusterSetDeps {
  readonly world: World;
  readonly log: Log;
  readonly directory: string;
  readonly parts: Parts;
  /** URLs of the admin endpoints, by part and cluster, for `demo.json`. */
  readonly admins: Map<string, string>;
}

export interface DemoBroker {
  readonly home: Home;
  readonly client: Client;
  readonly authority: Authority;
  readonly certificates: DemoCertificates;
  /** URL of the authority's admin endpoint. */
  readonly admin: string;
}

export interface RunningCluster {
  readonly cluster: DemoCluster;
  readonly home: Home;
  readonly client: Client;
  readonly resolver: Resolver;
  /** URL of the resolver's admin endpoint. */
  readonly admin: string;
  readonly brokerLink: CutTransport;
}

export const demoClusterSet = 'demo';
export const demoFederation = { name: 'world', suffix: 'federation' };
/** The identity that may post stub zones to the resolvers. */
const federationIdentity = 'demo-federation';
const host = '127.0.0.1';
const tokenLifetimeMs = 7 * 24 * 3_600_000;

export async function startBroker(deps: DemoDeps, addresses: DemoRange): Promise<DemoBroker> {
  const home = await startDemoHome(deps, 'broker', []);
  const client = clientOf(deps, home);
  // Short leases, so that a person who cuts a cluster off does not wait for half a minute.
  const lease = { renewSeconds: 2, durationSeconds: 6, holdDownSeconds: 2, holdDownMaxSeconds: 10 };
  const { clusterSet, peers, external } = addresses;
  const spec = { lease, addressRanges: { clusterSet: [clusterSet], peers: [peers], external: [external] } };
  await brokerInit({ client, deps, clusterset: demoClusterSet, spec });
  const certificates = makeCertificates(deps.world);
  const identity = certificates.issue(federationIdentity, { kind: 'client' });
  const authority = await startAuthority({
    world: deps.world,
    log: deps.log,
    broker: { client, clusterset: demoClusterSet },
    federation: demoFederation.name,
    listen: { hosts: [host], port: 0 },
    trust: { trusted: { ranges: ['127.0.0.1/32'], identities: [] }, keys: [] },
    identity,
  });
  deps.parts.add('authority', () => authority.stop());
  const { server, table } = authority;
  const admin = await startDemoDnsAdmin(deps, 'authority', {
    part: 'authority',
    server,
    registrations: authority.leases,
    certificates: dnsCertificates({ identity }),
    zones: () => [table.zone],
    notReady: () => (table.table.isReady(table.zone.id) ? '' : 'not read yet'),
    status: () => ({
      federation: demoFederation.name,
      isLeading: authority.role.isLeading(),
      ...authority.staleZones(),
    }),
  });
  await client.create(federationType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Federation',
    metadata: { name: demoFederation.name, namespace: demoClusterSet },
    spec: { suffix: demoFederation.suffix, nameservers: [`127.0.0.1:${authority.port}`] },
  });
  return { home, client, authority, certificates, admin };
}

export async function startCluster(deps: DemoDeps, broker: DemoBroker, cluster: DemoCluster): Promise<RunningCluster> {
  const home = await startDemoHome(deps, cluster.id, [cluster.serviceRange]);
  const client = clientOf(deps, home);
  const stubEndpoint = stubEndpointOf(deps, broker, cluster);
  const resolver = await startDemoResolver(deps, { cluster, client, stubEndpoint });
  await joinSet(deps, broker, { cluster, home: client, resolver });
  const membership = await requireMembership(client);
  const brokerLink = cutTransport(() =>
    deps.world.network.http({
      ...parseServers(membership.server),
      certificateAuthority: membership.certificateAuthority,
      bearerToken: async () => membership.token,
    }),
  );
  deps.parts.add(`${cluster.id}: link to the broker`, () => brokerLink.close());
  const metrics = createPartMetrics('agent');
  const brokerClient = createClient(brokerLink, { world: deps.world, userAgent: 'portolan-agent' });
  const agent = createAgent({
    ...{ world: deps.world, log: deps.log, metrics },
    home: client,
    broker: brokerClient,
    membership,
  });
  agent.start();
  deps.parts.add(`${cluster.id}: agent`, () => agent.stop());
  startDemoExternal(deps, { home: client, broker: brokerClient, membership });
  const state = (): AgentRoleState => ({
    ...{ kind: 'leading', clusterId: cluster.id, clusterset: demoClusterSet },
    ...(brokerLink.isCut() ? { brokerProblem: 'the way to the broker is cut' } : {}),
  });
  measureAgentRole(metrics, () => ({ state: state(), membership }));
  await addAdmin(deps, `agent-${cluster.id}`, (listen) =>
    startAdminEndpoint({ listen, metrics, notReady: () => notReady(state()), status: state }),
  );
  const { server, catalog } = resolver;
  const admin = await startDemoDnsAdmin(deps, `dns-${cluster.id}`, {
    part: 'dns',
    server,
    catalog,
    registrations: resolver.leases,
    certificates: dnsCertificates({ stubEndpoint }),
    zones: () => resolver.zones(),
    notReady: () => resolver.notReady(),
    status: () => ({ cluster: cluster.id, ...resolver.staleZones() }),
  });
  return { cluster, home, client, resolver, admin, brokerLink };
}

/** Which nameservers the federation has it learns from the authority, which posts them to its endpoint. */
function stubEndpointOf({ directory }: DemoDeps, { certificates }: DemoBroker, { id }: DemoCluster): StubEndpoint {
  return {
    ...{ host, port: 0 },
    ...certificates.issue(`${id} resolver`, { kind: 'server', hosts: [host] }),
    clientAuthority: certificates.authority,
    allowed: [federationIdentity],
    file: `${directory}/${id}/stub-zones.json`,
  };
}

async function startDemoResolver(
  { world, log, directory, parts }: DemoDeps,
  { cluster, client, stubEndpoint }: { cluster: DemoCluster; client: Client; stubEndpoint: StubEndpoint },
): Promise<Resolver> {
  const own = { world, log, directory: `${directory}/${cluster.id}`, owner: ownerOf(cluster.id) };
  const resolver = await startResolver({
    ...{ world, log, home: client, cluster, stubEndpoint },
    namesCopy: await findNamesCopy(own),
    listen: { hosts: [host], port: 0 },
  });
  parts.add(`${cluster.id}: resolver`, () => resolver.stop());
  return resolver;
}

/** Waits until every resolver has the zone, by the Federation's status. */
export async function untilPosted({ world }: DemoDeps, { client }: DemoBroker, count: number): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const ref = { namespace: demoClusterSet, name: demoFederation.name };
    const { status } = await client.get<Federation>(federationType, ref);
    const stubZones = status?.stubZones ?? [];
    if (stubZones.filter(({ state }) => state === 'Posted').length === count) return;
    if (tries > 300) throw new Error(`demo: resolvers were not told of the federation: ${JSON.stringify(stubZones)}`);
    await sleep(world.timers, 100);
  }
}

function startDemoDnsAdmin(
  deps: DemoDeps,
  of: string,
  options: Omit<DnsAdminOptions, 'world' | 'listen'>,
): Promise<string> {
  return addAdmin(deps, of, (listen) => startDnsAdmin({ ...options, world: deps.world, listen }));
}

/** On a free port. Resolves to its URL. */
export async function addAdmin(
  { parts, admins }: Pick<DemoDeps, 'parts' | 'admins'>,
  of: string,
  start: (listen: { readonly host: string; readonly port: number }) => Promise<AdminEndpoint>,
): Promise<string> {
  const endpoint = await start({ host, port: 0 });
  parts.add(`${of}: admin endpoint`, () => endpoint.close());
  admins.set(of, endpoint.url);
  return endpoint.url;
}

export async function startDemoHome(deps: DemoDeps, name: string, serviceRanges: readonly string[]): Promise<Home> {
  const home = await startHome({
    world: deps.world,
    log: deps.log.with({ home: name }),
    directory: `${deps.directory}/${name}`,
    listen: { host: '127.0.0.1', port: 0 },
    ...(serviceRanges.length === 0 ? {} : { serviceRanges }),
  });
  deps.parts.add(`${name}: home`, () => home.stop());
  return home;
}

export function clientOf({ world }: DemoDeps, home: Home): Client {
  return createClient(home.transport, { world, userAgent: 'portolan-demo' });
}

interface Joining {
  readonly cluster: DemoCluster;
  readonly home: Client;
  readonly resolver: Resolver;
}

async function joinSet(deps: DemoDeps, broker: DemoBroker, { cluster, home, resolver }: Joining): Promise<void> {
  const { id, region, zone, podRange, serviceRange } = cluster;
  const caBundle = Buffer.from(broker.certificates.authority).toString('base64');
  const endpoint = `https://127.0.0.1:${resolver.stubPort}`;
  const token = await brokerToken({
    client: broker.client,
    access: broker.home,
    clusterset: demoClusterSet,
    id,
    spec: { region, zone, allowedRanges: [podRange, serviceRange], resolver: { endpoint, caBundle } },
    lifetimeMs: 600_000,
    isRenewal: false,
  });
  const claims = { region, zone, podRanges: [podRange], serviceRanges: [serviceRange] };
  await join(deps, { home, token: parseJoinToken(token), claims, lifetimeMs: tokenLifetimeMs });
}

export interface DemoCertificates {
  /** PEM. */
  readonly authority: string;
  issue(commonName: string, use: CertificateUse): Credentials;
}

const hourMs = 3_600_000;
const lifetimeMs = 30 * 24 * hourMs;

export function makeCertificates({ clock, random }: Pick<World, 'clock' | 'random'>): DemoCertificates {
  const issuer = { subject: { commonName: 'portolan demo' }, key: generatePrivateKey() };
  const nowMs = clock.wallMs();
  const common = () => ({ serial: random.bytes(16), notBeforeMs: nowMs - hourMs, notAfterMs: nowMs + lifetimeMs });
  return {
    authority: issueCertificate({ ...issuer, use: { kind: 'authority' }, ...common() }),
    issue: (commonName, use) => {
      const key = generatePrivateKey();
      return { key, certificate: issueCertificate({ subject: { commonName }, key, issuer, use, ...common() }) };
    },
  };
}
