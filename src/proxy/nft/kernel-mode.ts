// The parts of nftables mode: one proxy for each node, the applier, what notices foreign changes, routes for the node's own
// processes, and checks of the node that are repeated.

import type { Host } from '../../base/host.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IpRange } from '../../base/net/ip.ts';
import { Parts } from '../../base/parts.ts';
import type { Timer, World } from '../../base/world.ts';
import type { ProxyState } from '../state.ts';
import type { Tally } from '../tally.ts';
import { probeEndpoint } from '../verdicts/edge/probe.ts';
import { Judge } from '../verdicts/judge.ts';
import { type ApplierStatus, NftApplier, type Planned } from './applier.ts';
import { AsideTables } from './aside-tables.ts';
import { type ByteCounts, BytesLayout, bytesTable } from './bytes-table.ts';
import { Conntrack } from './conntrack.ts';
import { CounterTable } from './counter-table.ts';
import { countsTable, type EndpointCounts } from './counts-table.ts';
import { listCounts } from './edge/list-counts.ts';
import { takeLock } from './edge/lock.ts';
import { type Nft, NftProgram } from './edge/nft.ts';
import { flowsTableName, readUntold } from './flows-table.ts';
import { ForeignChanges, type Kept } from './foreign-changes.ts';
import { KernelCounts } from './kernel-counts.ts';
import { kubeProxyIn } from './kube-proxy.ts';
import { transactionObserver } from './metrics.ts';
import { NodeChecks } from './node-checks.ts';
import { rangeProblems } from './node-network.ts';
import type { Redirect } from './redirects.ts';
import { type TableOptions, tableName } from './table.ts';
import { type KeptTable, TableKeeper } from './table-keeper.ts';

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

const bytesLookMs = 2_000;

/** Rejects if this node cannot have rules: later problems are in `status`. */
export async function openKernelMode(options: KernelModeOptions): Promise<KernelMode> {
  const { host, log, table } = options;
  const parts = new Parts(log);
  const lock = await takeLock();
  parts.add('lock', () => lock.release());
  const nft = new NftProgram(host);
  parts.add('nft', () => nft.close());
  const aside = new AsideTables({ ...options, nft, ranges: table.ranges });
  try {
    // Says at once if nft is missing or may not.
    const others = kubeProxyIn(await nft.list('ruleset-without-elements'));
    if (options.carriesServices && others !== undefined) throw new Error(twoProxies(others));
    const taken = await rangeProblems(host, table.ranges);
    if (taken.length > 0) throw new Error(taken.join('; '));
    await aside.write();
  } catch (error) {
    await parts.stop();
    throw error;
  }
  const rules = new KernelRules({ ...options, nft, aside, parts });
  await rules.prepare();
  return rules;
}

function twoProxies(others: string): string {
  return `--services: this node has ${others}: kube-proxy carries its Services; remove it from this node and run kube-proxy --cleanup, or leave --services out`;
}

interface KernelRulesOptions extends KernelModeOptions {
  readonly nft: NftProgram;
  readonly aside: AsideTables;
  readonly parts: Parts;
}

class KernelRules implements KernelMode {
  readonly nft: Nft;
  readonly judge: Judge | undefined;
  readonly #options: KernelRulesOptions;
  readonly #applier: NftApplier;
  readonly #node: NodeChecks;
  readonly #counts: KernelCounts;
  readonly #bytes: CounterTable<ByteCounts>;
  readonly #kept: Map<string, Kept>;

  constructor(options: KernelRulesOptions) {
    this.#options = options;
    const { host, world, log, table, nft } = options;
    this.nft = nft;
    const conntrack = new Conntrack(host, log);
    const observe = transactionObserver(options.metrics, () => this.#applier.status());
    this.#applier = new NftApplier({ ...options, nft, observe, onGone: (gone) => void conntrack.clear(gone) });
    this.#node = new NodeChecks({ ...options, ranges: table.ranges });
    this.#counts = new KernelCounts({
      ...options,
      ranges: table.ranges,
      onLook: (since) => this.#counted(since),
      nft: { apply: (script) => nft.apply(script), listCounts: () => listCounts(host, countsTable) },
    });
    this.#bytes = new CounterTable({
      ...{ world, log, ranges: table.ranges, lookMs: bytesLookMs, layout: new BytesLayout() },
      problem: 'bytes are not counted',
      onLook: options.onCounted,
      nft: { apply: (script) => nft.apply(script), listCounts: () => listCounts(host, bytesTable) },
    });
    this.judge = openJudge(options, () => this.#counts.lookSoon());
    this.#kept = new Map([[tableName, this.#applier]]);
  }

  /** Starts what runs before the first rules are written. */
  async prepare(): Promise<void> {
    const { world, log, nft, aside, parts, verifyMs } = this.#options;
    parts.add('applier', () => this.#applier.stop());
    parts.add('node checks', () => this.#node.stop());
    await this.#node.start();
    parts.add('counts', () => this.#counts.stop());
    parts.add('bytes', () => this.#bytes.stop());
    parts.add('judge', () => this.judge?.stop());
    const changes = new ForeignChanges({ world, log, nft, kept: this.#kept, onUnseen: () => aside.write() });
    parts.add('monitor', () => changes.stop());
    addVerification({ world, log, verify: () => this.verify(), everyMs: verifyMs }, parts);
  }

  async start(): Promise<void> {
    await this.#applier.start();
    await this.#counts.start();
    await this.#bytes.start();
    this.judge?.start();
  }

  get tally(): Tally {
    return this.#counts.tally;
  }

  async useRanges(ranges: readonly IpRange[]): Promise<string> {
    const problem = await this.#node.useRanges(ranges);
    if (problem !== '') return problem;
    this.#applier.setTable({ ...this.#options.table, ranges });
    await this.#options.aside.setRanges(ranges);
    this.#counts.setRanges(ranges);
    this.#bytes.setRanges(ranges);
    return problem;
  }

  setRedirects(redirects: readonly Redirect[]): void {
    this.#applier.setRedirects(redirects);
  }

  status(): ApplierStatus & { readonly nodeProblems: readonly string[] } {
    const status = this.#applier.status();
    return { ...status, problem: this.#node.rangeProblem || status.problem, nodeProblems: this.#node.problems() };
  }

  async verify(): Promise<string[]> {
    const found: string[] = [];
    for (const one of this.#kept.values()) found.push(...(await one.verify()));
    return found;
  }

  async untoldFlows(): Promise<number> {
    return readUntold(await this.#options.nft.list({ table: flowsTableName }));
  }

  keep(table: KeptTable): TableKeeper {
    const { world, log, nft } = this.#options;
    const keeper = new TableKeeper({ world, log, nft, table });
    this.#kept.set(table.plan.name, keeper);
    return keeper;
  }

  async stop(): Promise<void> {
    await this.#options.parts.stop();
  }

  #counted(since: Parameters<KernelModeOptions['onCounted']>[0] & Parameters<Judge['counted']>[0]): void {
    this.judge?.counted(since);
    this.#options.aside.setDistance(this.judge?.paths.longestRttMs() ?? 0);
    this.#options.onCounted(since);
  }
}

function openJudge({ world, log, state, leavesSilent, onSilent }: KernelModeOptions, lookSoon: () => void) {
  if (!leavesSilent) return undefined;
  const judge = new Judge({ world, log, state, probe: probeEndpoint, lookSoon, onChange: onSilent });
  state.setAnswering(judge);
  return judge;
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
