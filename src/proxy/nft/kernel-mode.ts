// The parts of nftables mode: one proxy for each node, the applier, what notices foreign changes, routes for the node's own
// processes, and checks of the node that are repeated.

import type { Host } from '../../base/host.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IpRange } from '../../base/net/ip.ts';
import { Parts } from '../../base/parts.ts';
import type { Timer, World } from '../../base/world.ts';
import { modeProblem } from '../ranges.ts';
import type { ProxyState } from '../state.ts';
import type { Tally } from '../tally.ts';
import { probeEndpoint } from '../verdicts/edge/probe.ts';
import { Judge } from '../verdicts/judge.ts';
import { type ApplierStatus, NftApplier, type Planned } from './applier.ts';
import { type ByteCounts, BytesLayout, bytesTable } from './bytes-table.ts';
import { Conntrack } from './conntrack.ts';
import { CounterTable } from './counter-table.ts';
import { countsTable, type EndpointCounts } from './counts-table.ts';
import { listCounts } from './edge/list-counts.ts';
import { takeLock } from './edge/lock.ts';
import { lostTrack, NftMonitor } from './edge/monitor.ts';
import { type Nft, NftProgram } from './edge/nft.ts';
import { flowsScript, flowsTableName, readUntold } from './flows-table.ts';
import { KernelCounts } from './kernel-counts.ts';
import { kubeProxyIn } from './kube-proxy.ts';
import { transactionObserver } from './metrics.ts';
import { addRoutes, forwardingProblem, rangeProblems, removeRoutes } from './node-network.ts';
import { OwnWriters } from './own-writers.ts';
import type { Redirect } from './redirects.ts';
import { retryAfter, retryScript } from './retry-table.ts';
import { type TableOptions, tableName } from './table.ts';
import { type ForeignChange, type KeptTable, TableKeeper } from './table-keeper.ts';

export interface KernelModeOptions {
  readonly host: Host;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly state: ProxyState;
  readonly metrics: Metrics;
  readonly table: TableOptions;
  readonly redirects?: readonly Redirect[];
  /** How often the kernel's rules are read back and compared; 0 never. */
  readonly verifyMs: number;
  /** Told again and again what the kernel has counted since the last time: connections, and bytes. */
  readonly onCounted: (since: ReadonlyMap<string, Partial<EndpointCounts & ByteCounts>>) => void;
  /** Whether the kernel tells of connections to clusterset addresses. */
  readonly tellsFlows: boolean;
  /** Whether endpoints that do not answer from this node are left. */
  readonly leavesSilent: boolean;
  /** Cluster IPs of this cluster's Services are among the ranges: nothing else may carry them here. */
  readonly carriesServices: boolean;
  /** Told of services whose rules are in place. */
  readonly onWritten: (services: readonly Planned[]) => void;
  /** Called when it has left endpoints, or uses them again. */
  readonly onSilent: () => void;
}

export interface KernelMode {
  /** Writes the rules; to be called when everything was read once. */
  start(): Promise<void>;
  /** Other ranges than before; resolves to why they cannot be used here, and then those before stay. */
  useRanges(ranges: readonly IpRange[]): Promise<string>;
  /** In place of those it was opened with. */
  setRedirects(redirects: readonly Redirect[]): void;
  status(): ApplierStatus & { readonly nodeProblems: readonly string[] };
  verify(): Promise<string[]>;
  /** Connections of services that are shifted. */
  readonly tally: Tally;
  /** New connections that the kernel did not tell of, beyond the rate at which it does. */
  untoldFlows(): Promise<number>;
  /** What this node sees of endpoints; absent if it was told not to look. */
  readonly judge: Judge | undefined;
  /** For further tables: changes go through it alone. */
  readonly nft: Nft;
  /** Another table, kept in the same way. */
  keep(table: KeptTable): TableKeeper;
  stop(): Promise<void>;
}

type Kept = Pick<TableKeeper, 'verify' | 'foreignChange'>;

const nodeCheckMs = 60_000;
const bytesLookMs = 2_000;
const monitorRestartMs = 5000;
const monitorOverlapMs = 1000;
/** Another change within this time is found by the next comparison. */
const lookAgainMs = 5000;

/** Rejects if this node cannot have rules: later problems are in `status`. */
export async function openKernelMode(options: KernelModeOptions): Promise<KernelMode> {
  const { host, world, log, table } = options;
  const parts = new Parts(log);
  const lock = await takeLock();
  parts.add('lock', () => lock.release());
  const nft = new NftProgram(host);
  parts.add('nft', () => nft.close());
  try {
    // Says at once if nft is missing or may not.
    const others = kubeProxyIn(await nft.list('ruleset-without-elements'));
    if (options.carriesServices && others !== undefined) throw new Error(twoProxies(others));
    const taken = await rangeProblems(host, table.ranges);
    if (taken.length > 0) throw new Error(taken.join('; '));
    await writeAside(options, nft, { ranges: table.ranges, longestRttMs: 0 });
  } catch (error) {
    await parts.stop();
    throw error;
  }
  const conntrack = new Conntrack(host, log);
  const observe = transactionObserver(options.metrics, () => applier.status());
  const applier: NftApplier = new NftApplier({
    ...options,
    nft,
    observe,
    onGone: (gone) => void conntrack.clear(gone),
  });
  parts.add('applier', () => applier.stop());
  const node = new NodeChecks(options);
  parts.add('node checks', () => node.stop());
  await node.start();
  let present: Aside = { ranges: table.ranges, longestRttMs: 0 };
  const useRanges = async (ranges: readonly IpRange[]) => {
    const problem = await node.useRanges(ranges);
    if (problem !== '') return problem;
    applier.setTable({ ...table, ranges });
    present = { ...present, ranges };
    await writeAside(options, nft, present);
    counts.setRanges(ranges);
    bytes.setRanges(ranges);
    return problem;
  };
  const counts: KernelCounts = new KernelCounts({
    ...options,
    ranges: table.ranges,
    onLook: (since) => {
      judge?.counted(since);
      followDistance();
      options.onCounted(since);
    },
    nft: { apply: (script) => nft.apply(script), listCounts: () => listCounts(host, countsTable) },
  });
  parts.add('counts', () => counts.stop());
  const bytes = new CounterTable({
    ...{ world, log, ranges: table.ranges, lookMs: bytesLookMs, layout: new BytesLayout() },
    problem: 'bytes are not counted',
    onLook: options.onCounted,
    nft: { apply: (script) => nft.apply(script), listCounts: () => listCounts(host, bytesTable) },
  });
  parts.add('bytes', () => bytes.stop());
  const judge = openJudge(options, () => counts.lookSoon());
  parts.add('judge', () => judge?.stop());
  const followDistance = () => {
    const longestRttMs = judge?.paths.longestRttMs() ?? 0;
    const isSame = retryAfter(longestRttMs) === retryAfter(present.longestRttMs);
    present = { ...present, longestRttMs };
    if (!isSame) void writeAside(options, nft, present);
  };
  const kept = new Map<string, Kept>([[tableName, applier]]);
  const verify = async () => {
    const found: string[] = [];
    for (const one of kept.values()) found.push(...(await one.verify()));
    return found;
  };
  addMonitor({ world, log, nft, kept, onUnseen: () => writeAside(options, nft, present) }, parts);
  addVerification({ world, log, verify, everyMs: options.verifyMs }, parts);
  return {
    start: async () => {
      await applier.start();
      await counts.start();
      await bytes.start();
      judge?.start();
    },
    tally: counts.tally,
    judge,
    useRanges,
    setRedirects: (redirects) => applier.setRedirects(redirects),
    status: () => {
      const status = applier.status();
      return { ...status, problem: node.rangeProblem || status.problem, nodeProblems: node.problems() };
    },
    verify,
    untoldFlows: async () => readUntold(await nft.list({ table: flowsTableName })),
    nft,
    keep: (wanted) => {
      const keeper = new TableKeeper({ world, log, nft, table: wanted });
      kept.set(wanted.plan.name, keeper);
      return keeper;
    },
    stop: () => parts.stop(),
  };
}

function twoProxies(others: string): string {
  return `--services: this node has ${others}: kube-proxy carries its Services; remove it from this node and run kube-proxy --cleanup, or leave --services out`;
}

interface Aside {
  readonly ranges: readonly IpRange[];
  readonly longestRttMs: number;
}

/** Tables that are not compared. A kernel that cannot do one of them is left as it is: the rules do without. */
async function writeAside(
  { log, tellsFlows }: Pick<KernelModeOptions, 'log' | 'tellsFlows'>,
  nft: NftProgram,
  { ranges, longestRttMs }: Aside,
): Promise<void> {
  const retry = retryScript(ranges, retryAfter(longestRttMs));
  const tables = [
    ['the kernel cannot forget single connections early: those to a silent endpoint fail', retry],
    ['the kernel cannot tell of single connections: no flows are recorded', tellsFlows ? flowsScript(ranges) : ''],
  ] as const;
  for (const [without, script] of tables)
    if (script !== '')
      await nft.apply(script).catch((error: unknown) => log.warn(without, { error: errorText(error) }));
}

function openJudge({ world, log, state, leavesSilent, onSilent }: KernelModeOptions, lookSoon: () => void) {
  if (!leavesSilent) return undefined;
  const judge = new Judge({ world, log, state, probe: probeEndpoint, lookSoon, onChange: onSilent });
  state.setAnswering(judge);
  return judge;
}

/** Warned of once each; a node whose forwarding is switched on later needs no restart. */
class NodeChecks {
  readonly #options: KernelModeOptions;
  #ranges: readonly IpRange[];
  #routes: readonly string[] = [];
  #problems: readonly string[] = [];
  #rangeProblem = '';
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: KernelModeOptions) {
    this.#options = options;
    this.#ranges = options.table.ranges;
  }

  async start(): Promise<void> {
    this.#routes = await addRoutes(this.#options.host, this.#ranges);
    await this.#check();
  }

  /** Why these ranges cannot be used in place of those before. */
  async useRanges(ranges: readonly IpRange[]): Promise<string> {
    const { host } = this.#options;
    this.#rangeProblem = modeProblem(ranges, 'nftables') ?? (await rangeProblems(host, ranges)).join('; ');
    if (this.#rangeProblem !== '') return this.#rangeProblem;
    await removeRoutes(host, { except: ranges });
    this.#ranges = ranges;
    this.#timer?.cancel();
    await this.start();
    return '';
  }

  get rangeProblem(): string {
    return this.#rangeProblem;
  }

  problems(): readonly string[] {
    return this.#problems;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #check(): Promise<void> {
    const { host, log, world } = this.#options;
    const ranges = this.#ranges;
    const forwarding = await forwardingProblem(host, new Set(ranges.map(({ family }) => family)));
    const taken = await rangeProblems(host, ranges).catch((error: unknown) => [errorText(error)]);
    const problems = [...(forwarding === '' ? [] : [forwarding]), ...taken, ...this.#routes];
    for (const problem of problems) if (!this.#problems.includes(problem)) log.warn('node', { problem });
    this.#problems = problems;
    this.#timer?.cancel();
    if (this.#isStopped) return;
    this.#timer = world.timers.after(nodeCheckMs, () => void this.#check());
  }
}

function addMonitor(
  {
    world,
    log,
    nft,
    kept,
    onUnseen,
  }: Pick<KernelModeOptions, 'world' | 'log'> & {
    readonly nft: NftProgram;
    /** By the name of their table. */
    readonly kept: ReadonlyMap<string, Kept>;
    /** Changes may have been missed, also of tables that are not compared. */
    readonly onUnseen: () => Promise<void>;
  },
  parts: Parts,
): void {
  let timer: Timer | undefined;
  let overlap: Timer | undefined;
  let openedMs = Number.NEGATIVE_INFINITY;
  let lookedMs = Number.NEGATIVE_INFINITY;
  let monitor: NftMonitor;
  /** They go on for a moment beside those that replace them. */
  const replaced = new Set<NftMonitor>();
  /** Whether a change of some map by another process was of ours: the kernel is read, not often. */
  const lookAt = (change: ForeignChange) => {
    const nowMs = world.clock.monotonicMs();
    if (nowMs - lookedMs < lookAgainMs) return;
    lookedMs = nowMs;
    for (const one of kept.values())
      one.verify().then(
        (found) => {
          if (found.length > 0) one.foreignChange(change);
        },
        (error: unknown) => log.warn('the rules in the kernel cannot be compared', { error: errorText(error) }),
      );
  };
  const lookAtAll = () => {
    void onUnseen();
    for (const one of kept.values())
      one
        .verify()
        .catch((error: unknown) => log.warn('the rules in the kernel cannot be compared', { error: errorText(error) }));
  };
  const restore = (change: ForeignChange) => {
    for (const [name, one] of kept)
      if (new RegExp(`\\b${name}(?=[\\s;]|$)`).test(change.line)) one.foreignChange(change);
  };
  const writers = new OwnWriters({
    world,
    introduce: (mark) => nft.introduce(mark),
    onForeign: (change) => (change.line === lostTrack ? lookAt(change) : restore(change)),
  });
  const open = () => {
    const opened = new NftMonitor({
      onTransaction: (transaction) => writers.seen(transaction),
      // The old one goes on until the new one listens: what both see is looked at twice.
      onLost: () => {
        timer?.cancel();
        timer = world.timers.after(Math.max(0, openedMs + monitorRestartMs - world.clock.monotonicMs()), () => {
          open();
          replaced.add(opened);
          overlap = world.timers.after(monitorOverlapMs, () => {
            replaced.delete(opened);
            void opened.stop();
          });
        });
      },
      onEnd: (why) => {
        if (monitor !== opened) return;
        log.warn('changes by others are not noticed for a moment', { why });
        // `nft flush ruleset`, as at a restart of a firewall, ends nft 1.0.6 before it tells of it.
        lookAtAll();
        // It may have lost track before, and be about to be replaced.
        timer?.cancel();
        timer = world.timers.after(monitorRestartMs, () => {
          open();
          overlap = world.timers.after(monitorOverlapMs, lookAtAll);
        });
      },
    });
    monitor = opened;
    openedMs = world.clock.monotonicMs();
  };
  open();
  parts.add('monitor', async () => {
    timer?.cancel();
    overlap?.cancel();
    writers.stop();
    await Promise.all([...replaced, monitor].map((each) => each.stop()));
  });
}

function addVerification(
  {
    world,
    log,
    verify,
    everyMs,
  }: Pick<KernelModeOptions, 'world' | 'log'> & {
    readonly verify: () => Promise<string[]>;
    readonly everyMs: number;
  },
  parts: Parts,
): void {
  if (everyMs === 0) return;
  let timer: Timer;
  const again = () => {
    timer = world.timers.after(everyMs, () => {
      verify()
        .catch((error: unknown) => log.warn('the rules could not be read back', { error: errorText(error) }))
        .then(again, again);
    });
  };
  again();
  parts.add('verification', () => timer.cancel());
}
