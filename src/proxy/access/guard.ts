// Enforces on this node which calls exports allow: follows exports and own slices while access is limited, keeps the table,
// ends connections that are not allowed any more, proves that the table is enforced, and counts what was refused.

import type { Host } from '../../base/host.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import type { SetAccess } from '../../clusterset/rules/access/set-access.ts';
import { problemsOfSources } from '../../clusterset/rules/access/source-problems.ts';
import { type Callers, noCallers } from '../../clusterset/rules/exports/callers.ts';
import { accessOf } from '../../clusterset/rules/exports/export-access.ts';
import { tuplesOf } from '../../clusterset/rules/exports/tuples.ts';
import type { Client } from '../../kube/client/client.ts';
import { ForwardingSink } from '../../kube/controller/forwarding-sink.ts';
import { Reflector } from '../../kube/controller/reflector.ts';
import { type EndpointSlice, endpointSliceType, serviceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { AccessReport, Refusal } from '../../kube/objects/reports/access-report.ts';
import type { Nft } from '../nft/edge/nft.ts';
import { runProgram } from '../nft/edge/programs.ts';
import type { KeptTable, TableKeeper } from '../nft/table-keeper.ts';
import type { ProbeEnds, ProbeResult } from './edge/probe.ts';
import { keptTable } from './kept-table.ts';
import { accessTableName, probe } from './names.ts';
import { flowsToEnd } from './open-flows.ts';
import { AccessPlan, configOf } from './plan.ts';
import { Refusals, type RefusedCall } from './refusals.ts';
import { removeAccessScript, seenSets } from './table.ts';

export interface AccessGuardOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly host: Host;
  readonly home: Client;
  readonly nft: Nft;
  /** Has the table kept as this says. */
  readonly keep: (table: KeptTable) => TableKeeper;
  readonly probe: (ends: ProbeEnds) => Promise<ProbeResult | undefined>;
  /** The report may be another one. */
  readonly onChange: () => void;
  readonly onRefused?: (call: RefusedCall) => void;
}

export interface SaidAtHome {
  readonly access?: SetAccess | undefined;
  readonly callers?: Callers | undefined;
}

const lookMs = 10_000;
const reportedMax = 10;
const notProved = 'not proved yet';
/** Devices of data planes that can deliver packets without netfilter. */
const bypassing = /\b(cilium_host|bpfin\.cali)\b/;

interface Running {
  readonly plan: AccessPlan;
  readonly keeper: TableKeeper;
  stop(): Promise<void>;
}

export class AccessGuard {
  readonly #options: AccessGuardOptions;
  #running: Running | undefined;
  #callers = noCallers;
  #text = '';
  #turn: Promise<void> = Promise.resolve();
  #isStopped = false;
  #isRead = false;
  #proof = notProved;
  #bypass = '';
  #timer: Timer | undefined;
  #looks: Promise<void> = Promise.resolve();
  #sweep: Promise<void> | undefined;
  #needsSweep = false;
  readonly #refusals: Refusals;

  constructor(options: AccessGuardOptions) {
    this.#options = options;
    this.#refusals = new Refusals(options.world.clock, options.onRefused);
  }

  /** What the home says; `nodeRanges` are those of Pods on this node. */
  use({ access, callers = noCallers }: SaidAtHome, nodeRanges: readonly string[]): void {
    if (access === undefined) return;
    this.#callers = callers;
    this.#running?.plan.setCallers(callers);
    const text = JSON.stringify([access, [...access.sources], nodeRanges]);
    if (text === this.#text) return;
    this.#text = text;
    this.#turn = this.#turn
      .then(() => (this.#isStopped ? undefined : this.#apply(access, nodeRanges)))
      .catch((error: unknown) => this.#options.log.warn('access', { error: errorText(error) }));
  }

  /** Undefined while access is open. */
  report(): AccessReport | undefined {
    const running = this.#running;
    if (running === undefined) return undefined;
    const { plan, keeper } = running;
    const { config } = plan;
    const [source] = problemsOfSources(config.judged);
    const { problem } = keeper.status();
    const failed = !this.#isRead
      ? { reason: 'NotRead', message: 'exports and slices of the home were not read yet' }
      : problem !== ''
        ? { reason: 'NotWritten', message: problem }
        : config.pods.length === 0
          ? { reason: 'NoPodRanges', message: 'the ranges of the Pods of this cluster are not known' }
          : this.#proof !== ''
            ? { reason: 'NotProved', message: this.#proof }
            : this.#bypass !== ''
              ? { reason: 'Bypassed', message: this.#bypass }
              : source;
    const refused = this.#refusals.mostFrequent(reportedMax);
    const { uncovered } = plan;
    return {
      mode: config.mode,
      isEnforced: failed === undefined,
      reason: failed?.reason ?? 'Enforced',
      message: (failed?.message ?? '').slice(0, 500),
      ...(uncovered > 0 ? { uncovered } : {}),
      knowsCallers: true,
      refused,
    };
  }

  /** All that was refused, or would be. */
  refusals(): Iterable<Refusal> {
    return this.#refusals.all();
  }

  get size(): number {
    return this.#running?.plan.tuples ?? 0;
  }

  /** Waits for what is under way; for tests and benchmarks. */
  async settled(): Promise<void> {
    await this.#turn;
    await this.#running?.keeper.settled();
    await this.#sweep;
  }

  /** The table stays: rules outlive the proxy. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#turn;
    await this.#running?.stop();
    await this.#sweep;
  }

  async #apply(access: SetAccess, nodeRanges: readonly string[]): Promise<void> {
    if (access.mode === 'Open') {
      await this.#running?.stop();
      this.#running = undefined;
      this.#timer?.cancel();
      await this.#options.nft.apply(removeAccessScript);
      this.#options.onChange();
      return;
    }
    const config = configOf(access, nodeRanges);
    if (this.#running !== undefined) {
      // What was proved of another mode says nothing about this one.
      const isOtherMode = this.#running.plan.config.mode !== config.mode;
      if (isOtherMode) this.#proof = notProved;
      this.#running.plan.configure(config);
      this.#running.keeper.refill();
      await this.#running.keeper.settled();
      this.#end();
      if (isOtherMode && this.#isRead) void this.#look();
    } else this.#running = this.#start(new AccessPlan(config, this.#callers));
    this.#options.onChange();
  }

  #start(plan: AccessPlan): Running {
    const { home: client, world, log } = this.#options;
    const keeper = this.#options.keep(keptTable(plan, () => this.#end()));
    plan.onDirty(() => keeper.wake());
    const waiting = new Set(['exports', 'slices']);
    this.#isRead = false;
    this.#proof = notProved;
    const listed = (what: string) => {
      if (!waiting.delete(what) || waiting.size > 0) return;
      this.#isRead = true;
      void keeper.start().then(() => {
        this.#end();
        return this.#look();
      });
    };
    const common = { client, world, log, onState: () => {} };
    const exports = new Reflector<ServiceExport>({
      ...{ ...common, type: serviceExportType },
      sink: new ForwardingSink(
        {
          upsert: (one: ServiceExport) => plan.setExport(keyOf(one), accessOf(one)),
          remove: (key) => plan.setExport(key, undefined),
          keys: () => plan.exportKeys(),
        },
        () => listed('exports'),
      ),
    });
    const slices = new Reflector<EndpointSlice>({
      ...{ ...common, type: endpointSliceType, labelSelector: serviceNameLabel },
      sink: new ForwardingSink(
        {
          upsert: (slice: EndpointSlice) => {
            const { namespace = '', labels } = slice.metadata;
            const service = `${namespace}/${labels?.[serviceNameLabel] ?? ''}`;
            plan.setSlice(keyOf(slice), { service, tuples: tuplesOf(slice) });
          },
          remove: (key) => plan.setSlice(key, undefined),
          keys: () => plan.sliceKeys(),
        },
        () => listed('slices'),
      ),
    });
    exports.start();
    slices.start();
    return {
      plan,
      keeper,
      stop: async () => {
        exports.stop();
        slices.stop();
        await keeper.stop();
      },
    };
  }

  /** Ends connections that are not allowed any more. One listing at a time; what comes meanwhile is one more. */
  #end(): void {
    this.#needsSweep = true;
    this.#sweep ??= (async () => {
      while (this.#needsSweep && !this.#isStopped) {
        this.#needsSweep = false;
        await this.#endOnce();
      }
    })()
      .catch((error: unknown) =>
        this.#options.log.warn('connections that are not allowed any more were not ended', { error: errorText(error) }),
      )
      .finally(() => {
        this.#sweep = undefined;
      });
  }

  async #endOnce(): Promise<void> {
    const { host } = this.#options;
    for (const family of ['ipv4', 'ipv6']) {
      const running = this.#running;
      if (running === undefined || running.plan.config.mode !== 'Exported') return;
      const { out } = await runProgram(host, 'conntrack', ['-L', '-f', family]);
      for (const ends of flowsToEnd(out, running.plan)) await runProgram(host, 'conntrack', ['-D', ...ends]);
    }
  }

  /** One after the other: they use the same ports. */
  #look(): Promise<void> {
    this.#looks = this.#looks.then(() => this.#lookOnce());
    return this.#looks;
  }

  /** Repeated: the proof, and what was refused since. */
  async #lookOnce(): Promise<void> {
    if (this.#isStopped || this.#running === undefined) return;
    const before = JSON.stringify(this.report());
    try {
      await this.#prove();
      for (const set of seenSets) {
        const json = await this.#options.nft.list({ table: accessTableName, set });
        if (this.#running !== undefined) this.#refusals.count(set, json, this.#running.plan);
      }
    } catch (error) {
      this.#options.log.warn('refused connections cannot be counted', { error: errorText(error) });
    }
    if (this.#isStopped || this.#running === undefined) return;
    if (JSON.stringify(this.report()) !== before) this.#options.onChange();
    this.#timer?.cancel();
    this.#timer = this.#options.world.timers.after(lookMs, () => void this.#look());
  }

  async #prove(): Promise<void> {
    const mode = this.#running?.plan.config.mode;
    const isExported = mode === 'Exported';
    const results = [
      await this.#options.probe({ ...probe, ...probe.IPv4 }),
      await this.#options.probe({ ...probe, ...probe.IPv6 }),
    ];
    if (this.#running?.plan.config.mode !== mode) return;
    const known = results.filter((result) => result !== undefined);
    if (known.length === 0) this.#proof = 'no connection over loopback could be tried';
    else if (known.some(({ exported }) => !exported))
      this.#proof = 'a port that is exported was not reached over loopback';
    else if (isExported && known.some(({ refused }) => !refused))
      this.#proof = 'a connection that must be refused was not: the kernel does not apply the rules';
    else this.#proof = '';
    const { out } = await runProgram(this.#options.host, 'ip', ['-o', 'link', 'show']);
    const device = bypassing.exec(out)?.[1];
    const isSeen = device === undefined || /"counter":\s*\{"packets":\s*[1-9]/.test(await this.#checkChain());
    this.#bypass = isSeen
      ? ''
      : `a data plane in eBPF runs here (${device}) and no packet to Pods was seen by these rules: it may deliver packets past them`;
  }

  async #checkChain(): Promise<string> {
    const { nftables = [] } = JSON.parse(await this.#options.nft.list('ruleset-without-elements')) as {
      nftables?: { rule?: { table?: string; chain?: string } }[];
    };
    return JSON.stringify(nftables.filter(({ rule }) => rule?.table === 'portolan-access' && rule.chain === 'check'));
  }
}
