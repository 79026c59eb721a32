// `portolan peer list`, `status`, `services`, `diff` and `retry`: the state of peers and what they share with us.

import { readFileSync } from 'node:fs';
import { formatHostPort } from '../../base/net/host-port.ts';
import type { Client } from '../../kube/client/client.ts';
import { isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { partLabel, partState } from '../../kube/objects/part-lease.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import {
  type DiffReport,
  describeDiff,
  describeDiffWithSent,
  describePeer,
  diffCatalogs,
  diffWithSent,
  type OwnerEntry,
  reachProblem,
  sideHealth,
  sideSummary,
} from '../../peering/explain/explain.ts';
import { type Peer, peerType, retryAnnotation } from '../../peering/kinds/peer.ts';
import {
  type PeerService,
  type PeerServiceReach,
  peerLabel,
  peerServiceType,
  reachOf,
} from '../../peering/kinds/peer-service.ts';
import type { SharedEndpoint } from '../../peering/kinds/shared-service.ts';
import { catalogPath } from '../../peering/rules/peer-introduction.ts';
import { reachableCondition } from '../../peering/rules/reach.ts';
import { notFoundError } from '../exit-codes.ts';
import { formatOutput, formatTable, type OutputFormat } from '../table.ts';
import { isKnown, type PeerHome, secretsNamespaceOf } from './add.ts';
import { callPeer, NotPortolan } from './call.ts';

/** Where the peering process keeps the certificate that it shows to peers. */
export const ownCertificateSecret = 'portolan-peering-tls';

export interface PeerReport {
  readonly lines: string[];
  /** The status of peers is outdated: no peering process reports. */
  readonly isSilent: boolean;
}

export async function listPeers(
  { client, namespace }: PeerHome,
  nowMs: number,
  format: OutputFormat = 'text',
): Promise<PeerReport> {
  const { items } = await client.list<Peer>(peerType, { namespace });
  if (items.length === 0 && format === 'text')
    return { lines: ['no peers; portolan peer token introduces one'], isSilent: false };
  const rows = items.map((peer) => [
    peer.metadata.name,
    peer.spec.address ?? '-',
    peer.spec.trust.domain,
    peer.spec.address === undefined ? '-' : sideSummary(peer, 'taking', nowMs),
    String(peer.status?.consumer?.services ?? 0),
    sideSummary(peer, 'giving', nowMs),
    String(peer.status?.owner?.services ?? 0),
  ]);
  const table = formatTable(['NAME', 'ADDRESS', 'DOMAIN', 'TAKING', 'SERVICES', 'GIVING', 'SERVICES'], rows);
  const isProcess = await isProcessSilent(client, namespace, nowMs);
  const report = withSilence(table, { peers: items, isProcessSilent: isProcess, nowMs });
  return formatted(format, report, { peers: items.map(publicPart), names: items.map(({ metadata }) => metadata.name) });
}

export async function showPeer(
  { client, namespace }: PeerHome,
  name: string,
  { nowMs, format = 'text' }: { readonly nowMs: number; readonly format?: OutputFormat },
): Promise<PeerReport> {
  const peer = await client.get<Peer>(peerType, { namespace, name });
  const isSilent = await isProcessSilent(client, namespace, nowMs);
  const report = withSilence(describePeer(peer, nowMs), { peers: [peer], isProcessSilent: isSilent, nowMs });
  return formatted(format, report, { peers: publicPart(peer), names: [name] });
}

function formatted(
  format: OutputFormat,
  { lines, isSilent }: PeerReport,
  { peers, names }: { readonly peers: unknown; readonly names: readonly string[] },
): PeerReport {
  return { lines: [...formatOutput(format, { value: { peers, isSilent }, names, text: () => lines })], isSilent };
}

function publicPart({ metadata, spec, status }: Peer) {
  return { name: metadata.name, address: spec.address, domain: spec.trust.domain, status };
}

/** By its Lease; false if that may not be read. */
async function isProcessSilent(client: Client, namespace: string, nowMs: number): Promise<boolean> {
  try {
    const { items } = await client.list<Lease>(leaseType, { namespace, labelSelector: `${partLabel}=peering` });
    return items.every((lease) => partState(lease, nowMs).kind === 'silent');
  } catch (error) {
    if (isForbidden(error)) return false;
    throw error;
  }
}

interface Silence {
  readonly peers: readonly Peer[];
  readonly isProcessSilent: boolean;
  readonly nowMs: number;
}

function withSilence(lines: string[], { peers, isProcessSilent: isDead, nowMs }: Silence): PeerReport {
  const isSilent = peers.some(({ spec, status }) => {
    const taking = spec.address === undefined ? undefined : sideHealth(status?.consumer, nowMs).isSilent;
    // A peer that only gives to us may never call: no report of it is no silence of our own process.
    const giving = status?.owner?.state === undefined ? undefined : sideHealth(status.owner, nowMs).isSilent;
    return isDead || taking === true || giving === true;
  });
  const problem = 'problem: the peering process does not report, this may be outdated; start portolan peering';
  return { lines: isSilent ? [...lines, problem] : lines, isSilent };
}

/** Services of one peer, or of all. */
export async function servicesOf({ client, namespace }: PeerHome, peer?: string): Promise<PeerService[]> {
  const selection = { namespace, labelSelector: peer === undefined ? peerLabel : `${peerLabel}=${peer}` };
  const services: PeerService[] = [];
  for await (const page of client.listPaged<PeerService>(peerServiceType, selection)) services.push(...page.items);
  return services;
}

export interface DiffOptions {
  readonly isAll: boolean;
  /** PEM files, for a peering process that was started with --cert and --key. */
  readonly files?: { readonly certificate: string; readonly key: string };
}

export async function diffPeer(home: PeerHome, name: string, options: DiffOptions): Promise<DiffReport> {
  const { client, namespace } = home;
  const peer = await client.get<Peer>(peerType, { namespace, name });
  const { address, trust, certificateSecret } = peer.spec;
  if (address === undefined) throw new Error(`peer ${name} has no address: we take nothing from it`);
  const call = {
    address,
    domain: trust.domain,
    bundle: trust.bundle ?? (await secretText(home, trust.bundleSecret?.name ?? '', 'ca.crt')),
    path: catalogPath,
    body: {},
    credentials: await credentialsFor(home, certificateSecret?.name, options),
  };
  try {
    const answer = await callPeer(call);
    if (answer.status !== 200) throw new Error(`peer ${name}: HTTP ${answer.status}: ${answer.body.message}`);
    const differences = diffCatalogs(peer, answer.body.services as OwnerEntry[], await servicesOf(home, name));
    return describeDiff(differences, options);
  } catch (error) {
    if (!(error instanceof NotPortolan)) throw error;
    return describeDiffWithSent(peer, diffWithSent(await servicesOf(home, name)), options);
  }
}

async function credentialsFor(home: PeerHome, secret: string | undefined, { files }: DiffOptions) {
  if (files !== undefined)
    return { certificate: readFileSync(files.certificate, 'utf8'), key: readFileSync(files.key, 'utf8') };
  try {
    return await credentialsFrom(home, secret ?? ownCertificateSecret);
  } catch (error) {
    if (!isNotFound(error) || secret !== undefined) throw error;
    throw new Error(
      `Secret ${await secretsNamespaceOf(home)}/${ownCertificateSecret} is not there: give the --cert and --key that portolan peering was started with`,
      { cause: error },
    );
  }
}

async function credentialsFrom(home: PeerHome, secret: string): Promise<{ certificate: string; key: string }> {
  return { certificate: await secretText(home, secret, 'tls.crt'), key: await secretText(home, secret, 'tls.key') };
}

export async function secretText(home: PeerHome, name: string, key: string): Promise<string> {
  const { client } = home;
  const namespace = await secretsNamespaceOf(home);
  const { data } = await client.get<Secret>(secretType, { namespace, name });
  if (data?.[key] === undefined) throw new Error(`Secret ${namespace}/${name} has no ${key}`);
  return Buffer.from(data[key], 'base64').toString('utf8');
}

export async function retryPeer(client: Client, namespace: string, name: string, now: string): Promise<string[]> {
  const body = { metadata: { annotations: { [retryAnnotation]: now } } };
  const { spec } = await client.patch<Peer>(peerType, { namespace, name }, { kind: 'merge', body });
  if (spec.address === undefined) return [`peer ${name} has no address: it comes to us, and only it can try again`];
  if (spec.suspended) return [`peer ${name} is suspended: nothing is tried before that is taken back`];
  return [`peer ${name} is tried again now; portolan peer status ${name} shows how it went`];
}

/** Services of one peer, or of all. */
export async function listServices(
  home: PeerHome,
  peer: string | undefined,
  format: OutputFormat,
): Promise<readonly string[]> {
  const carried = await carriedBy(home);
  const services = (await servicesOf(home, peer)).map((service) => carried(reachOf(service)));
  if (peer !== undefined && services.length === 0 && !(await isKnown(home, peer)))
    throw notFoundError(`peer ${peer}: no such Peer; portolan peer list shows all`);
  const names = services.map(({ id }) => id);
  return formatOutput(format, { value: services, names, text: () => servicesText(services, peer) });
}

/** What is known of the way to a peer's services; nothing where Peers may not be read. */
async function carriedBy({ client, namespace }: PeerHome): Promise<(reach: PeerServiceReach) => PeerServiceReach> {
  const { items } = await client.list<Peer>(peerType, { namespace }).catch((error: unknown) => {
    if (isForbidden(error)) return { items: [] as Peer[] };
    throw error;
  });
  const problems = new Map(items.map((peer) => [peer.metadata.name, reachProblem(peer, reachableCondition)]));
  return (reach) => {
    const problem = problems.get(reach.peer);
    return problem === undefined
      ? reach
      : { ...reach, notCarried: { reason: problem.reason, message: problem.message } };
  };
}

function servicesText(services: readonly PeerServiceReach[], peer: string | undefined): string[] {
  if (services.length === 0)
    return [peer === undefined ? 'nothing is held of any peer' : `nothing is held of peer ${peer}`];
  const head = ['ID', 'NAMES', 'ADDRESS', 'PROTOCOLS', 'INGRESS', 'SNI', 'SAN', 'STATE', 'MESSAGE'];
  const rows = services.map(rowOf);
  if (peer !== undefined) return formatTable(head, rows);
  return formatTable(
    ['PEER', ...head],
    rows.map((row, i) => [services[i]!.peer, ...row]),
  );
}

function rowOf(reach: PeerServiceReach): string[] {
  const { id, hostnames, ips, protocols, ingress, sni, sans, state, message = '', notCarried } = reach;
  const lists = [hostnames, ips, protocols, ingress.map(endpointText), [sni], sans];
  const shown =
    state === 'Active' && notCarried !== undefined ? [notCarried.reason, notCarried.message] : [state, message];
  return [id, ...lists.map((list) => list.join(',') || '-'), ...shown];
}

export function endpointText({ address, port }: SharedEndpoint): string {
  return formatHostPort(address, port);
}
