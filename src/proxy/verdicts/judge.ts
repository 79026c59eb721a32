// What this node sees of endpoints: the kernel's counters come in at each look, suspicions are confirmed by the node's own probes, and the
// services whose choice changes by it are worked out again. Probes are bounded: of suspected and silent endpoints, of one endpoint in
// each other cluster of such a service, and of one endpoint of each cluster now and then, which also measures the distance.

import type { Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Target } from '../../catalog/facts/targets.ts';
import type { Answering } from '../../clusterset/rules/choice/answering.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import type { SilentCluster, SilentReport } from '../../kube/objects/reports/silent-clusters.ts';
import type { ProxyState } from '../state.ts';
import { probeDueMs, type Sight, stepVerdict, unknownVerdict, type Verdict } from './endpoint-verdict.ts';
import { type LeftClusters, leftIn, silentReport } from './left-clusters.ts';
import { describePath, longestProbeMs, Paths, type ProbeRequest, type ProbeResult, probeWaitMs } from './paths.ts';

export interface JudgeOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly state: Pick<ProxyState, 'choiceOf' | 'touch' | 'samples' | 'forgetSample' | 'has'> & {
    readonly addresses: Pick<ProxyState['addresses'], 'holderOf'>;
  };
  readonly probe: (request: ProbeRequest) => Promise<ProbeResult>;
  /** Asks for the counters before their time. */
  readonly lookSoon: () => void;
  /** Called when the report has changed. */
  readonly onChange: () => void;
}

/** Counts of one look, by `ADDRESS ENDPOINT PORT`. */
type Counted = ReadonlyMap<string, { readonly tried: number; readonly answered: number; readonly refused: number }>;

interface Watched {
  readonly target: Target;
  readonly services: Set<string>;
  verdict: Verdict;
  hasAnsweredProbe: boolean;
}

/** Answers of other clusters that are older do not count. */
const answeredLatelyMs = 10_000;
const witnessMs = 3_000;
const witnessesMax = 3;
/** Each cluster in turn, so many together. */
const pathRoundMs = 10_000;
const pathProbesMax = 30;
const probesMax = 200;
const shownMax = 100;
const watchedMax = 20_000;

export class Judge implements Answering<Target> {
  readonly paths = new Paths();
  readonly #options: JudgeOptions;
  /** By address and port. */
  readonly #watched = new Map<string, Watched>();
  readonly #answeredMs = new Map<string, number>();
  /** Services with endpoints that are suspected, silent or left, and when their witnesses were asked last. */
  readonly #affected = new Map<string, number>();
  readonly #left = new Map<string, LeftClusters>();
  #probing = 0;
  #round = 0;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  start(): void {
    this.#pathRound();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  readonly silentSinceMs = (target: Target): number | undefined => {
    if (this.#watched.size === 0) return undefined;
    const verdict = this.#watched.get(keyOf(target))?.verdict;
    return verdict?.kind === 'silent' ? verdict.sinceMs : undefined;
  };

  readonly hasAnsweredLately = (target: Target): boolean =>
    this.#nowMs() - (this.#answeredMs.get(keyOf(target)) ?? Number.NEGATIVE_INFINITY) < answeredLatelyMs;

  /** Services with endpoints that are left now, by service and cluster, with times since 1970. */
  report(): SilentReport {
    const { clock } = this.#options.world;
    return silentReport(this.#left, clock.wallMs() - clock.monotonicMs());
  }

  /** For people. */
  status(): object {
    const services = [...this.report()].slice(0, shownMax).map(([service, clusters]) => {
      const of = ([cluster, each]: [string, SilentCluster]) =>
        [cluster, `${each.left} of ${each.of}, since ${formatTime(each.sinceMs)}`] as const;
      return [service, Object.fromEntries([...clusters].map(of))] as const;
    });
    const paths = [...this.paths.entries()].slice(0, shownMax).map(([cluster, path]) => [cluster, describePath(path)]);
    return { services: Object.fromEntries(services), paths: Object.fromEntries(paths) };
  }

  /** What has come since the last look. */
  counted(since: Counted): void {
    const nowMs = this.#nowMs();
    const seen = this.#byEndpoint(since, nowMs);
    for (const [key, watched] of this.#watched) {
      const counts = seen.get(key) ?? { tried: 0, answered: 0, refused: 0 };
      this.#step(watched, { kind: 'counted', ...counts });
      if (watched.verdict.kind !== 'answers') for (const each of watched.services) this.#affect(each);
      else if (!watched.hasAnsweredProbe && nowMs >= watched.verdict.lapsesUntilMs) this.#watched.delete(key);
    }
    this.#forgetOld(nowMs);
    this.#probeDue(nowMs);
    this.#askWitnesses(nowMs);
    this.#settle();
  }

  #byEndpoint(since: Counted, nowMs: number) {
    const seen = new Map<string, { tried: number; answered: number; refused: number }>();
    for (const [path, { tried, answered, refused }] of since) {
      const key = path.slice(path.indexOf(' ') + 1);
      const sum = seen.get(key) ?? { tried: 0, answered: 0, refused: 0 };
      seen.set(key, {
        tried: sum.tried + tried,
        answered: sum.answered + answered,
        refused: sum.refused + refused,
      });
      if (answered > 0) this.#answeredMs.set(key, nowMs);
    }
    // Only now is it known whether another service had an answer of the same endpoint.
    for (const [path, { tried }] of since) {
      const key = path.slice(path.indexOf(' ') + 1);
      if (tried > 0 && seen.get(key)!.answered === 0) this.#watch(path.slice(0, path.indexOf(' ')), key);
    }
    return seen;
  }

  #watch(address: string, key: string): void {
    const service = this.#options.state.addresses.holderOf(address);
    const known = this.#watched.get(key);
    if (service === undefined || known?.services.has(service)) return;
    const target = this.#candidates(service).find((each) => keyOf(each) === key);
    if (target === undefined) return;
    if (known !== undefined) known.services.add(service);
    else this.#add(target, service);
  }

  #add(target: Target, service: string): Watched {
    const key = keyOf(target);
    const known = this.#watched.get(key);
    if (known !== undefined) {
      known.services.add(service);
      return known;
    }
    const watched = { target, services: new Set([service]), verdict: unknownVerdict, hasAnsweredProbe: false };
    this.#watched.set(key, watched);
    return watched;
  }

  /** Ready endpoints of a service that are reached directly by TCP, whether they get connections now or not. */
  #candidates(service: string): Target[] {
    return this.#candidatesOfPorts(service).flat();
  }

  #candidatesOfPorts(service: string): Target[][] {
    return this.#options.state
      .choiceOf(service)
      .ports.filter(({ protocol }) => protocol === 'TCP')
      .map(({ backends, later = [], left = [] }) =>
        [...backends, ...later.flat(), ...left.map(({ endpoint }) => endpoint)].filter(({ via }) => via === undefined),
      );
  }

  readonly #isDoubted = (target: Target): boolean =>
    (this.#watched.get(keyOf(target))?.verdict.kind ?? 'answers') !== 'answers';

  #affect(service: string): void {
    if (!this.#affected.has(service)) this.#affected.set(service, Number.NEGATIVE_INFINITY);
  }

  #step(watched: Watched, sight: Sight): void {
    const { target, hasAnsweredProbe } = watched;
    const rttMs = this.paths.rttMs(target.cluster);
    watched.verdict = stepVerdict(watched.verdict, sight, { nowMs: this.#nowMs(), rttMs, hasAnsweredProbe });
  }

  #probeDue(nowMs: number): void {
    for (const [key, watched] of this.#watched) {
      if (this.#probing >= probesMax) return;
      if ((probeDueMs(watched.verdict) ?? Number.POSITIVE_INFINITY) > nowMs) continue;
      if (this.#isCandidate(watched)) void this.#probe(watched);
      else this.#watched.delete(key);
    }
  }

  /** Services that no longer have it are forgotten. */
  #isCandidate({ target, services }: Watched): boolean {
    const key = keyOf(target);
    for (const service of services)
      if (!this.#candidates(service).some((each) => keyOf(each) === key)) services.delete(service);
    return services.size > 0;
  }

  async #probe(watched: Watched): Promise<void> {
    const { target } = watched;
    this.#step(watched, { kind: 'asked' });
    this.#probing += 1;
    const isLeft = watched.verdict.kind === 'silent';
    const waitMs = isLeft ? longestProbeMs : probeWaitMs(this.paths.rttMs(target.cluster));
    const result = await this.#options.probe({ address: target.address, port: target.port, waitMs });
    this.#probing -= 1;
    if (this.#isStopped) return;
    if (result === 'unknown') return this.#step(watched, { kind: 'not asked' });
    if (result !== 'unanswered') {
      this.paths.note(target.cluster, result);
      this.#answeredMs.set(keyOf(target), this.#nowMs());
    }
    // One that has never answered a probe before this one does not become suspected by it.
    this.#step(watched, { kind: 'probed', isAnswered: result !== 'unanswered' });
    watched.hasAnsweredProbe ||= result !== 'unanswered';
    if (watched.verdict.kind !== 'answers') {
      for (const each of watched.services) this.#affect(each);
      this.#options.lookSoon();
    }
    this.#settle();
  }

  /** One endpoint in each other cluster of a port that is affected: a whole cluster is left only if another one answers there. */
  #askWitnesses(nowMs: number): void {
    for (const [service, askedMs] of this.#affected) {
      if (nowMs - askedMs < witnessMs || this.#probing >= probesMax) continue;
      this.#affected.set(service, nowMs);
      const unheard = this.#candidatesOfPorts(service)
        .filter((endpoints) => endpoints.some(this.#isDoubted))
        .flatMap((endpoints) => [...Map.groupBy(endpoints, ({ cluster }) => cluster).values()])
        .map((endpoints) => endpoints.filter((each) => this.silentSinceMs(each) === undefined))
        .filter((endpoints) => endpoints.length > 0 && !endpoints.some(this.hasAnsweredLately));
      this.#round += 1;
      for (const endpoints of unheard.slice(0, witnessesMax))
        void this.#probe(this.#add(endpoints[this.#round % endpoints.length]!, service));
    }
  }

  #pathRound(): void {
    const clusters = [...this.#options.state.samples()];
    this.#round += 1;
    const first = clusters.length <= pathProbesMax ? 0 : (this.#round * pathProbesMax) % clusters.length;
    for (const [cluster, services] of [...clusters.slice(first), ...clusters.slice(0, first)].slice(0, pathProbesMax)) {
      const service = services[this.#round % services.length]!;
      const endpoints = this.#candidates(service).filter((each) => each.cluster === cluster);
      if (endpoints.length === 0) this.#options.state.forgetSample(cluster, service);
      else
        void this.#probe(this.#add(endpoints[Math.floor(this.#round / services.length) % endpoints.length]!, service));
    }
    this.#timer = this.#options.world.timers.after(clusters.length === 0 ? 1_000 : pathRoundMs, () =>
      this.#pathRound(),
    );
  }

  /** Services whose choice is no longer what was told are worked out again. */
  #settle(): void {
    let isChanged = false;
    for (const service of this.#affected.keys()) {
      const before = this.#left.get(service);
      const now = leftIn(this.#options.state.choiceOf(service).ports);
      if (now.size === 0) this.#left.delete(service);
      else this.#left.set(service, now);
      if (now.size === 0 && !this.#isWatched(service)) this.#affected.delete(service);
      if (signatureOf(now) === signatureOf(before)) continue;
      isChanged = true;
      this.#tell(service, now);
      this.#options.state.touch(service);
    }
    if (isChanged) this.#options.onChange();
  }

  #isWatched(service: string): boolean {
    for (const { verdict, services } of this.#watched.values())
      if (verdict.kind !== 'answers' && services.has(service)) return true;
    return false;
  }

  #tell(service: string, now: LeftClusters): void {
    const left = [...now].map(([cluster, each]) => `${each.endpoints.length} of ${each.of} in ${cluster}`);
    if (left.length === 0) this.#options.log.info('endpoints answer again from this node', { service });
    else this.#options.log.warn('endpoints do not answer from this node and get no connections', { service, left });
  }

  #forgetOld(nowMs: number): void {
    if (this.#answeredMs.size > watchedMax)
      for (const [key, ms] of this.#answeredMs) if (nowMs - ms >= answeredLatelyMs) this.#answeredMs.delete(key);
    for (const [key, { verdict }] of this.#watched) {
      if (this.#watched.size <= watchedMax) return;
      if (verdict.kind === 'answers') this.#watched.delete(key);
    }
  }

  #nowMs(): number {
    return this.#options.world.clock.monotonicMs();
  }
}

function keyOf({ address, port }: Target): string {
  return `${address} ${port}`;
}

function signatureOf(left: LeftClusters | undefined): string {
  return [...(left ?? [])].map(([cluster, { endpoints, of }]) => `${cluster} ${of} ${endpoints.join()}`).join(';');
}
