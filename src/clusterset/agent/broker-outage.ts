// While the broker does not answer and this agent does not lead, nobody writes conditions: a leader stops after ten seconds, and
// one that was started meanwhile never begins. What it left at home would go on saying that all is well. This marks the exports
// that rest on the broker once for each outage, and tries until the home has taken it.

import { errorText, type Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { Timer, World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import type { Candidate } from '../../kube/controller/leader.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime, withConditions } from '../../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type ServiceExport, serviceExportType } from '../kinds/service-export.ts';
import { brokerNoteKey, verdictsName } from '../membership/membership.ts';
import { outdatedConditions } from '../rules/export-conditions.ts';

export interface BrokerOutageOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly home: Client;
  readonly systemNamespace: string;
  readonly candidate: Pick<Candidate, 'isLeader' | 'problem' | 'isHeldByOther'>;
}

const lookMs = 1_000;
/** A broker that restarts is back sooner. A leader steps down a little later than this. */
const boundMs = 8_000;
const timeoutMs = 5_000;

export class BrokerOutage {
  readonly #options: BrokerOutageOptions;
  /** Since when the broker gives no answer, by the monotonic clock. */
  #sinceMs: number | undefined;
  #isMarked = false;
  #timer: Timer | undefined;
  #isStopped = false;
  readonly #failureLines: LogBudget;

  constructor(options: BrokerOutageOptions) {
    this.#options = options;
    this.#failureLines = new LogBudget(options.world.clock, { linesMax: 1, perMs: 60_000 });
  }

  start(): void {
    this.#timer = this.#options.world.timers.after(lookMs, () => void this.#look());
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { world, candidate, log } = this.#options;
    if (candidate.problem() === '') [this.#sinceMs, this.#isMarked] = [undefined, false];
    else this.#sinceMs ??= world.clock.monotonicMs();
    try {
      if (this.#isDue()) this.#isMarked = await this.#mark();
    } catch (error) {
      const fields = this.#failureLines.take();
      if (fields) log.warn('exports not marked: the broker is away', { error: errorText(error), ...fields });
    }
    if (!this.#isStopped) this.start();
  }

  /** Another agent that leads marks them itself when it has lost the broker; perhaps we alone are cut off. */
  #isDue(): boolean {
    const { world, candidate } = this.#options;
    if (this.#sinceMs === undefined || this.#isMarked || candidate.isLeader() || candidate.isHeldByOther())
      return false;
    return world.clock.monotonicMs() - this.#sinceMs >= boundMs;
  }

  /** Whether nothing was left to mark: what was written last may have been overwritten by a leader that is about to stop. */
  async #mark(): Promise<boolean> {
    const { world, home } = this.#options;
    const since = await this.#note(formatTime(world.clock.wallMs() - (world.clock.monotonicMs() - this.#sinceMs!)));
    let isDone = true;
    for await (const { items } of home.listPaged<ServiceExport>(serviceExportType, { timeoutMs })) {
      for (const one of items) {
        if (this.#isStopped || !this.#isDue()) return false;
        if (await this.#markOne(one, since)) isDone = false;
      }
    }
    return isDone;
  }

  async #markOne(one: ServiceExport, since: string): Promise<boolean> {
    const { world, home } = this.#options;
    const wanted = outdatedConditions(one.status?.conditions, since);
    if (wanted.length === 0 || one.metadata.deletionTimestamp !== undefined) return false;
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: one.metadata.generation };
    const conditions = [...withConditions(one.status?.conditions, wanted, stamp)];
    try {
      await home.updateStatus(serviceExportType, { ...one, status: { ...one.status, conditions } }, { timeoutMs });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return true;
  }

  /** Since when, for people who ask the home. An agent that led before may have noted it already. */
  async #note(since: string): Promise<string> {
    const { home, systemNamespace: namespace } = this.#options;
    const ref = { namespace, name: verdictsName };
    const present = await getOrUndefined<ConfigMap>(home, configMapType, ref, { timeoutMs });
    const noted = present?.data?.[brokerNoteKey];
    if (noted !== undefined) return noted;
    const data = { ...present?.data, [brokerNoteKey]: since };
    if (present !== undefined) await home.update<ConfigMap>(configMapType, { ...present, data }, { timeoutMs });
    else {
      const made: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: ref, data };
      await home.create<ConfigMap>(configMapType, made, { timeoutMs });
    }
    return since;
  }
}
