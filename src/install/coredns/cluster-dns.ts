// What the CoreDNS of a cluster has of our zones, and what has to be written for it: into its own ConfigMap, into the one that a
// provider merges into it, or nowhere, where a provider replaces the whole. Pure.

import type { ConfigMap } from '../../kube/objects/config-map.ts';
import { mainPort, markedBlock, serverBlocks, withMarked, withoutMarked, zoneOf } from './corefile.ts';
import { corefileBlock, type StubKind } from './stub-blocks.ts';

export const corednsRef = { namespace: 'kube-system', name: 'coredns' } as const;
export const customRef = { namespace: 'kube-system', name: 'coredns-custom' } as const;
const corefileKey = 'Corefile';
const customKey = 'portolan.server';

export interface ClusterDns {
  /** ConfigMap `coredns`; undefined if the cluster has none. */
  readonly coredns: ConfigMap | undefined;
  /** ConfigMap `coredns-custom`. */
  readonly custom: ConfigMap | undefined;
}

export interface DnsWanted {
  /** Addresses of the Service portolan-dns. */
  readonly addresses: readonly string[];
  /** The first is that of the clusterset. */
  readonly zones: readonly string[];
}

/** `other`: a block that is not ours serves the zone in a way of its own. */
export type StubState =
  | { readonly kind: 'asks' | 'absent' | 'other' }
  | { readonly kind: 'elsewhere'; readonly forwards: readonly string[] };

/** Which way this CoreDNS is configured, as far as its ConfigMap shows it. */
export function kindOf({ coredns }: ClusterDns): StubKind {
  if (coredns?.metadata.labels?.['eks.amazonaws.com/component'] !== undefined) return 'eks';
  // AKS, and k3s, which writes its own ConfigMap anew at each start.
  return /^\s*import\s+\S*custom\/\*\.server\s*$/m.test(corefileOf(coredns)) ? 'aks' : 'coredns';
}

function corefileOf(coredns: ConfigMap | undefined): string {
  return coredns?.data?.[corefileKey] ?? '';
}

/** Whether it asks our resolvers for the zone of the clusterset. */
export function stubState(dns: ClusterDns, { addresses, zones: [zone = ''] }: DnsWanted): StubState {
  const block = allBlocks(dns).find(({ keys }) => keys.some((key) => zoneOf(key) === zone));
  if (block === undefined) return { kind: 'absent' };
  const { forwards } = block;
  if (forwards.length === 0) return { kind: 'other' };
  const isOurs = forwards.some((to) =>
    addresses.includes(to.replace(/^[a-z]+:\/\//, '').replace(/(?<=[\d\]]):53$/, '')),
  );
  return isOurs ? { kind: 'asks' } : { kind: 'elsewhere', forwards };
}

function allBlocks({ coredns, custom }: ClusterDns) {
  return [corefileOf(coredns), ...serverTexts(custom)].flatMap(serverBlocks);
}

function serverTexts(custom: ConfigMap | undefined): string[] {
  return Object.entries(custom?.data ?? {})
    .filter(([key]) => key.endsWith('.server'))
    .map(([, text]) => text);
}

export interface DnsChange {
  /** The object as it shall be; undefined to delete it. */
  readonly object: ConfigMap | undefined;
  readonly present: ConfigMap | undefined;
  readonly ref: typeof corednsRef | typeof customRef;
  readonly key: string;
  readonly before: string;
  readonly after: string;
}

/** The change that has to be made; undefined if there is none. Throws if what is there does not allow it. */
export function planChange(dns: ClusterDns, wanted: DnsWanted, kind: Exclude<StubKind, 'eks'>): DnsChange | undefined {
  const corefile = corefileOf(dns.coredns);
  if (serverBlocks(corefile).length === 0)
    throw new Error(
      'the Corefile has no server block with braces, so nothing can be added to it; add the block by hand (portolan install --print-stub coredns)',
    );
  const block = corefileBlock({ ...wanted, port: mainPort(corefile) });
  refuseTaken(dns, block);
  return kind === 'coredns'
    ? inCorefile(dns, withMarked(corefile, block))
    : inCustom(dns, { ...dns.custom?.data, [customKey]: block });
}

/** Takes out what an earlier run has written, wherever it is. */
export function planRemoval(dns: ClusterDns): DnsChange[] {
  const { [customKey]: _, ...rest } = dns.custom?.data ?? {};
  const changes = [inCorefile(dns, withoutMarked(corefileOf(dns.coredns))), inCustom(dns, rest)];
  return changes.filter((change) => change !== undefined);
}

function inCorefile({ coredns }: ClusterDns, after: string): DnsChange | undefined {
  const before = corefileOf(coredns);
  if (coredns === undefined || before === after) return undefined;
  const object = { ...coredns, data: { ...coredns.data, [corefileKey]: after } };
  return { object, present: coredns, ref: corednsRef, key: corefileKey, before, after };
}

const madeByUs = 'portolan.dev/made-by-coredns-command';

function inCustom({ custom }: ClusterDns, data: Readonly<Record<string, string>>): DnsChange | undefined {
  const [before = '', after = ''] = [custom?.data?.[customKey], data[customKey]];
  if (before === after) return undefined;
  const shared = { present: custom, ref: customRef, key: customKey, before, after };
  const isLast = Object.keys(data).length === 0 && Object.keys(custom?.binaryData ?? {}).length === 0;
  if (custom?.metadata.annotations?.[madeByUs] === 'true' && isLast) return { ...shared, object: undefined };
  const metadata = custom?.metadata ?? { ...customRef, annotations: { [madeByUs]: 'true' } };
  return { ...shared, object: { apiVersion: 'v1', kind: 'ConfigMap', ...custom, metadata, data } };
}

/** One key in two blocks: CoreDNS would go on with the old Corefile, and not start again. */
function refuseTaken({ coredns, custom }: ClusterDns, block: string): void {
  const others = [
    withoutMarked(corefileOf(coredns)),
    ...serverTexts(custom && { ...custom, data: { ...custom.data, [customKey]: '' } }),
  ];
  const taken = new Set(others.flatMap(serverBlocks).flatMap(({ keys }) => keys));
  const twice = serverBlocks(block).flatMap(({ keys }) => keys.filter((key) => taken.has(key)));
  if (twice.length > 0)
    throw new Error(
      `the Corefile has a server block for ${twice.map((key) => zoneOf(key)).join(', ')} already, which is not ours; remove it first, or leave it as it is`,
    );
}

/** The configuration of the add-on of EKS, which replaces the whole Corefile. */
export function addonCorefile(dns: ClusterDns, wanted: DnsWanted | undefined): string {
  const others = withoutMarked(corefileOf(dns.coredns));
  if (wanted === undefined) return others;
  const block = corefileBlock({ ...wanted, port: mainPort(others) });
  refuseTaken(dns, block);
  return withMarked(others, block);
}

/** Whether it takes a new Corefile by itself. */
export function reloads({ coredns }: ClusterDns): boolean {
  return serverBlocks(corefileOf(coredns)).some(({ plugins }) => plugins.includes('reload'));
}

/** What an earlier run has written is there. */
export function hasOurs({ coredns, custom }: ClusterDns): boolean {
  return markedBlock(corefileOf(coredns)) !== undefined || custom?.data?.[customKey] !== undefined;
}
