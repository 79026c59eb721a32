// The parts of a node's proxy: what it knows of the home, the kernel's rules or its own listeners, and its Lease.

import type { Host } from '../../base/host.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { formatRange, type IpRange } from '../../base/net/ip.ts';
import { Parts } from '../../base/parts.ts';
import type { World } from '../../base/world.ts';
import { healthPort } from '../../clusterset/rules/networks/listener-ports.ts';
import type { Client } from '../../kube/client/client.ts';
import { keepPartLease, type PartLease } from '../../kube/controller/part-lease.ts';
import { partAnnotations } from '../../kube/objects/part-lease.ts';
import { type AccessReport, accessAnnotation } from '../../kube/objects/reports/access-report.ts';
import { carriesServicesAnnotation } from '../../kube/objects/reports/carried-services.ts';
import {
  type CountsByCluster,
  connectionsAnnotation,
  formatConnections,
} from '../../kube/objects/reports/connections.ts';
import { type Redirected, redirectsAnnotation } from '../../kube/objects/reports/data-plane.ts';
import { formatSilent, type SilentReport, silentAnnotation } from '../../kube/objects/reports/silent-clusters.ts';
import { probeAccess } from '../../proxy/access/edge/probe.ts';
import { AccessGuard } from '../../proxy/access/guard.ts';
import { attachProxy } from '../../proxy/attach.ts';
import type { Identify } from '../../proxy/connectivity/prober.ts';
import { ClientPods } from '../../proxy/flows/client-pods.ts';
import { ConntrackEvents } from '../../proxy/flows/edge/conntrack-events.ts';
import type { FlowPage } from '../../proxy/flows/flow.ts';
import { type AskedFlows, flowPage, KernelFlows } from '../../proxy/flows/flows.ts';
import { FlowOwners } from '../../proxy/flows/owners.ts';
import { Totals } from '../../proxy/flows/totals.ts';
import { registerTrafficMetrics } from '../../proxy/flows/traffic-metrics.ts';
import { RateWindow, type TrafficPage, trafficPage } from '../../proxy/flows/traffic-page.ts';
import { NearSide } from '../../proxy/near-side.ts';
import { openKernelMode } from '../../proxy/nft/kernel-mode.ts';
import { registerProxyMetrics } from '../../proxy/nft/metrics.ts';
import type { Redirect } from '../../proxy/nft/redirects.ts';
import { nodeAddressesOf } from '../../proxy/node-addresses.ts';
import { overlapProblem } from '../../proxy/ranges.ts';
import { RuleTraces } from '../../proxy/rule-traces.ts';
import { ProxyState } from '../../proxy/state.ts';
import { UserspaceFlows } from '../../proxy/userspace/flows.ts';
import { Listeners } from '../../proxy/userspace/listeners.ts';
import { type ViewInput, viewOf } from '../../proxy/view.ts';
import { ownAddresses } from '../identity/own-names.ts';

export interface ProxyOptions {
  readonly host: Host;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly home: Client;
  readonly mode: 'nftables' | 'userspace';
  /** Its name; the Lease carries it. */
  readonly node: string;
  readonly view: ViewInput;
  /** Whether the ranges are those of the clusterset, as the home has them, in place of those of the view. */
  readonly learnsRanges?: boolean;
  readonly redirects?: readonly Redirect[];
  /** The connections that it is told to redirect. */
  readonly redirected?: Redirected;
  /** The user of the Envoy that redirected connections go to. */
  readonly envoyUid?: number;
  /** How often the kernel's rules are compared with the plan; 0 never. */
  readonly verifyMs: number;
  /** Whether the last connections are kept in memory. */
  readonly recordsFlows: boolean;
  /** Whether endpoints that do not answer from this node are left, in nftables mode; they are if absent. */
  readonly leavesSilent?: boolean;
  readonly leaseRenewMs?: number;
  /** URL where the node's Envoy answers whether it carries connections to a cluster of another network. */
  readonly gatewayHealth?: string;
}

export interface ProxyRole {
  readonly state: ProxyState;
  readonly lease: PartLease;
  /** In nftables mode: replaces the connections that are redirected to a local port. */
  setRedirects(redirects: readonly Redirect[]): void;
  /** Resolves when what the home holds is served. */
  whenServing(): Promise<void>;
  /** Empty while everything is served. */
  notReady(): string;
  status(): object;
  /** In userspace mode it knows itself which endpoint a connection reached. */
  readonly identify?: Identify;
  /** In nftables mode: the differences that were found in the kernel and put right. */
  verify(): Promise<string[]>;
  /** The last flows, or those after a number; absent if none are recorded. */
  readonly flows?: (asked: AskedFlows) => Promise<FlowPage>;
  /** All traffic by service and cluster. */
  traffic(): TrafficPage;
  stop(): Promise<void>;
}

/** So many clusters are named in its Lease. */
const unreachedMax = 50;

function unreachedAnnotations(clusters: readonly string[]): Record<string, string> {
  return clusters.length === 0 ? {} : { [partAnnotations.unreached]: clusters.slice(0, unreachedMax).join(',') };
}

function connectionAnnotations(report: ReadonlyMap<string, CountsByCluster>): Record<string, string> {
  return report.size === 0 ? {} : { [connectionsAnnotation]: formatConnections(report) };
}

function silentAnnotations(report: SilentReport): Record<string, string> {
  return report.size === 0 ? {} : { [silentAnnotation]: formatSilent(report) };
}

function accessAnnotations(report: AccessReport | undefined): Record<string, string> {
  return report === undefined ? {} : { [accessAnnotation]: JSON.stringify(report) };
}

export async function startProxy(options: ProxyOptions): Promise<ProxyRole> {
  const { world, log, home, metrics, node, mode } = options;
  const parts = new Parts(log);
  const input = { ...options.view, isUserspace: mode === 'userspace' };
  const ownRanges = input.carriesServices ? input.serviceRanges : [];
  const overlap = overlapProblem(input.ranges, ownRanges);
  if (overlap !== undefined) throw new Error(overlap);
  const state = new ProxyState(viewOf(input));
  const [totals, owners, sinceMs] = [new Totals(), new FlowOwners(state), world.clock.wallMs()];
  const window = new RateWindow(totals, world.clock.monotonicMs());
  const traces = new RuleTraces(world, () => state.view.self.cluster);
  const ownFlows =
    mode === 'userspace'
      ? new UserspaceFlows(world.clock, totals, (...endpoint) => owners.ownerOf(...endpoint))
      : undefined;
  const serving =
    mode === 'userspace'
      ? new Listeners({ world, log, state, flows: ownFlows, onWritten: traces.written })
      : await openKernelMode({
          ...options,
          state,
          tellsFlows: options.recordsFlows,
          onCounted: (since) => {
            totals.count(since, owners, world.clock.wallMs());
            window.note(world.clock.monotonicMs());
          },
          leavesSilent: options.leavesSilent ?? true,
          carriesServices: input.carriesServices === true,
          onSilent: () => lease.changed(),
          onWritten: traces.written,
          table: { ranges: [...input.ranges, ...ownRanges], redirectExceptUid: options.envoyUid },
        });
  parts.add(mode, () => serving.stop());
  const useRanges = options.learnsRanges
    ? async (ranges: readonly IpRange[]) =>
        overlapProblem(ranges, ownRanges) ?? serving.useRanges([...ranges, ...ownRanges])
    : undefined;
  const guard =
    'keep' in serving
      ? new AccessGuard({
          ...{ world, log, host: options.host, home, nft: serving.nft, probe: probeAccess },
          keep: (table) => serving.keep(table),
          onChange: () => lease.changed(),
          onRefused: (call) => kernelFlows?.denied(call, state.view.self.cluster),
        })
      : undefined;
  parts.add('access', () => guard?.stop());
  /** A proxy that is no part of the kernel enforces nothing. */
  let accessMode = 'Open';
  let isOnNode = false;
  const onPlace = ({ access, callers, nodeRanges, node: place }: ViewInput) => {
    isOnNode = place !== undefined;
    accessMode = access?.mode ?? accessMode;
    guard?.use({ access, callers }, [...nodeRanges.map(formatRange), ...(place?.spec?.podCIDRs ?? [])]);
  };
  const accessReport = (): AccessReport | undefined => {
    if (guard !== undefined || accessMode === 'Open') return guard?.report();
    const message = 'userspace mode refuses nothing';
    return { mode: accessMode, isEnforced: false, reason: 'Userspace', message, refused: [] };
  };
  const attachment = attachProxy({ client: home, world, log, state, view: input, node, useRanges, onPlace });
  parts.add('watches', () => attachment.stop());
  const nearSide = new NearSide({
    world,
    health: options.gatewayHealth ?? `http://127.0.0.1:${healthPort}`,
    networks: () => state.view.networks,
    addresses: () => nodeAddressesOf([...state.view.internalAddresses, ...ownAddresses()]),
    onChange: (view) => {
      state.setNearSide(view);
      const clusters = nearSide.unreached();
      lease.changed();
      if (clusters.length > 0) log.warn('clusters of other networks are not reached from this node', { clusters });
    },
  });
  const kernelFlows =
    options.recordsFlows && 'untoldFlows' in serving
      ? new KernelFlows({
          ...{ world, owners, unrecorded: () => serving.untoldFlows() },
          podAt: (address) => pods?.at(address),
          open: (events) => new ConntrackEvents(events),
        })
      : undefined;
  let pods: ClientPods | undefined;
  parts.add('pods', () => pods?.stop());
  parts.add('flows', () => kernelFlows?.stop());
  const recorded = kernelFlows ?? (options.recordsFlows ? ownFlows : undefined);
  const judge = 'judge' in serving ? serving.judge : undefined;
  const problemsOf = () => serving.status().problems;
  registerProxyMetrics({
    metrics,
    size: () => serving.status().size,
    problems: () => Object.keys(problemsOf()).length,
    isStale: () => attachment.staleSinceMs() !== undefined,
    isEnforced: () => accessReport()?.isEnforced,
    refusals: () => guard?.refusals() ?? [],
    silent: () => judge?.report() ?? new Map(),
    paths: () => judge?.paths.entries() ?? [],
  });
  registerTrafficMetrics({ metrics, totals, self: () => state.view.self });
  const whenServing = attachment
    .whenSynced()
    .then(() => serving.start())
    .then(() => {
      kernelFlows?.start();
      if (kernelFlows === undefined) return;
      // A home without Nodes, as the embedded one, does not say where its Pods are.
      pods = new ClientPods({ client: home, world, log, ...(isOnNode ? { node } : {}) });
      pods.start();
    })
    .then(() => traces.follow(state.facts));
  whenServing.catch((error: unknown) => log.error('serving did not begin', { error }));
  const notReady = () => serving.status().problem || (attachment.hasSynced() ? '' : 'the home was not read yet');
  let isRedirecting = mode === 'nftables' && (options.redirects ?? []).length > 0;
  const lease: PartLease = keepPartLease({
    client: home,
    world,
    log,
    part: 'proxy',
    id: node,
    node,
    mode,
    renewMs: options.leaseRenewMs,
    extras: () => ({
      'portolan.dev/not-ready': notReady().slice(0, 500),
      ...(isRedirecting ? { [redirectsAnnotation]: (options.redirected ?? 'envoy') satisfies Redirected } : {}),
      ...(input.carriesServices && notReady() === '' ? { [carriesServicesAnnotation]: 'true' } : {}),
      ...unreachedAnnotations(nearSide.unreached()),
      ...connectionAnnotations(serving.tally.report()),
      ...silentAnnotations(judge?.report() ?? new Map()),
      ...accessAnnotations(accessReport()),
    }),
  });
  parts.add('lease', () => lease.stop());
  if (mode === 'nftables') {
    nearSide.start();
    parts.add('way to other networks', () => nearSide.stop());
  }
  return {
    state,
    lease,
    setRedirects: (redirects) => {
      if (!('setRedirects' in serving)) return;
      serving.setRedirects(redirects);
      if (!isRedirecting) lease.changed();
      isRedirecting = true;
    },
    whenServing: () => whenServing,
    notReady: () => notReady() || lease.problem(),
    identify: serving instanceof Listeners ? serving.identify : undefined,
    status: () => {
      const { self } = state.view;
      return {
        mode,
        node,
        place: self,
        read: state.size,
        isStale: attachment.staleSinceMs() !== undefined,
        ...serving.status(),
        ...(judge === undefined ? {} : { silent: judge.status() }),
        ...(accessReport() === undefined ? {} : { access: accessReport() }),
      };
    },
    traffic: () =>
      trafficPage({ node, state, totals, window, clock: world.clock, sinceMs, denied: guard?.refusals() ?? [] }),
    flows: recorded && ((asked) => flowPage(recorded, { state, node }, asked)),
    verify: async () => ('verify' in serving ? serving.verify() : []),
    stop: () => parts.stop(),
  };
}
