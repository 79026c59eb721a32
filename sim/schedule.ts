// One random run: a clusterset is made, things happen to it in an order that the seed decides, then it is left alone
// until it has calmed down, and must be in order. The trace says what was asked of whom, and when.

import { createHash } from 'node:crypto';
import type { HttpRequest } from '../src/base/http.ts';
import type { Random } from '../src/base/world.ts';
import type { createAgent } from '../src/clusterset/agent/agent.ts';
import type { ClusterSetSpec } from '../src/clusterset/kinds/cluster-set.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import type { Attributes } from '../src/home/model/access.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { isOwnReport, isPlacementStatus, memberNamespace, SimClusterSet, setName } from './clusterset.ts';
import { agentOf, isWrite, LossyNetwork, quiet } from './lossy.ts';
import { addressViolations, findViolations } from './properties.ts';
import { chance, pick, type StepContext } from './step.ts';
import { observersMax, randomStep } from './steps.ts';
import { readTruth } from './truth.ts';
import { seededRandom, type VirtualWorldOptions } from './virtual-world.ts';

export interface ScheduleOptions {
  readonly seed: number;
  readonly createAgent?: typeof createAgent;
  readonly stepCount?: number;
  /** How many clusters; two to four by the seed when absent. */
  readonly members?: number;
  /** Told each step in words. */
  readonly onStep?: (text: string) => void;
}

export interface ScheduleResult {
  readonly seed: number;
  readonly violations: readonly string[];
  /** Digest of every request, its time and its answer: equal for equal runs. */
  readonly trace: string;
}

// Longer than a request may hang, and a copy may wait before it lists again.
const calmMsMax = 120_000;
// Longer than a lease and its renewal: every dead member has been noticed.
const calmMsMin = 25_000;
const outageMs = 40_000;
// Longer than a lease, a renewal that hangs and what is read late: who has been well for so long has been seen to be.
const wellMs = 40_000;
// Two who disagree about an object must not write it in turns for ever. Leases are written all the time.
const writesMax = 100;

export async function runSchedule(options: ScheduleOptions): Promise<ScheduleResult> {
  const run = new ScheduleRun(options);
  await run.begin();
  for (let step = 0; step < (options.stepCount ?? 25) && run.violations.length === 0; step += 1) await run.step();
  await run.calmDown();
  if (run.violations.length === 0) await run.outage();
  return run.result();
}

class ScheduleRun {
  readonly violations: string[] = [];
  readonly #options: ScheduleOptions;
  readonly #set: SimClusterSet;
  readonly #lossy: LossyNetwork;
  readonly #random: Random;
  readonly #spec: ClusterSetSpec;
  readonly #ids: readonly string[];
  readonly #trace: string[] = [];
  readonly #copies: StepContext['copies'] = {};
  /** When a member was last known not to run or not to reach the broker, and when the network last lost something. */
  readonly #troubledMs = new Map<string, number>();
  #unreliableMs = 0;
  /** For each home, the revision at which its addresses were last checked. */
  readonly #checkedRevisions = new Map<string, number>();
  /** How often each object was written by an agent, whether that worked or not. */
  readonly #writes = new Map<string, number>();

  constructor(options: ScheduleOptions) {
    this.#options = options;
    const { seed, members } = options;
    const numbered = Array.from({ length: members ?? 0 }, (_, index) => `c${String(index + 1).padStart(3, '0')}`);
    this.#ids = members === undefined ? ['east', 'west', 'north', 'south'].slice(0, 2 + (seed % 3)) : numbered;
    this.#spec = randomSpec(seed);
    let lossy: LossyNetwork | undefined;
    this.#set = new SimClusterSet({
      seed: options.seed,
      clusters: this.#ids,
      set: this.#spec,
      clock: randomClocks(options.seed),
      createAgent: options.createAgent,
      onLog: (line) => this.#hear(line),
      wrap: (home, handler) => this.#traced(home, (request) => lossy!.wrap(handler)(request)),
      onRequest: (home, user, attributes) => home === 'broker' && this.#watchWrite(user, attributes),
    });
    this.#random = this.#set.simulation.world('schedule').random;
    lossy = new LossyNetwork({ random: this.#random, time: this.#set.time, kill: (id) => this.#set.killAgent(id) });
    this.#lossy = lossy;
  }

  async begin(): Promise<void> {
    await this.#set.start({ namespaces: ['shop'] });
    await this.#set.time.advance(500);
  }

  async step(): Promise<void> {
    const [set, lossy, random, ids, copies] = [this.#set, this.#lossy, this.#random, this.#ids, this.#copies];
    const context: StepContext = { set, lossy, random, ids, copies };
    this.#noteTrouble();
    const text = await randomStep(context);
    this.#noteTrouble();
    if (text.includes('as it was when copied')) this.#unreliableMs = set.time.nowMs;
    this.#say(text);
    await this.#set.time.advance(chance(this.#random, 0.7) ? this.#random.float() * 500 : this.#random.float() * 5_000);
    for (const id of this.#ids) await this.#checkAddresses(id);
  }

  /** Everything heals but, sometimes, one cluster that stays dead. */
  async calmDown(): Promise<void> {
    this.#noteTrouble();
    this.#lossy.calmDown();
    if (!this.#set.broker.isUp) await this.#set.broker.start();
    for (const id of this.#ids) this.#set.setBrokerLink(id, 'up');
    const isLarge = this.#ids.length > observersMax;
    const mortal = isLarge && chance(this.#random, 0.5) ? this.#ids.slice(0, observersMax) : this.#ids;
    const dead = chance(this.#random, isLarge ? 0.6 : 0.3) ? pick(this.#random, mortal) : undefined;
    for (const id of this.#ids) {
      if (id === dead) this.#set.killAgent(id);
      else if (!this.#set.isAgentRunning(id)) this.#set.startAgent(id);
    }
    this.#noteTrouble();
    this.#say(`calm, ${dead ?? 'nobody'} stays dead`);
    await this.#expectOrder();
  }

  /** The broker goes away for a while: no home may change by it, also not by agents that are started meanwhile. */
  async outage(): Promise<void> {
    const before = await this.#homeContents();
    this.#set.broker.kill();
    const restarted = chance(this.#random, 0.5) ? this.#ids.find((id) => this.#set.isAgentRunning(id)) : undefined;
    if (restarted !== undefined) {
      this.#set.killAgent(restarted);
      this.#set.startAgent(restarted);
    }
    this.#say(`broker away, agent of ${restarted ?? 'nobody'} restarted`);
    await this.#set.time.advance(outageMs);
    const during = await this.#homeContents();
    if (during !== before) this.violations.push(`a broker outage changed a home: ${before} became ${during}`);
    await this.#set.broker.start();
    // No member can be seen to be well while there is no broker.
    for (const id of this.#ids) this.#troubledMs.set(id, (this.#troubledMs.get(id) ?? 0) + outageMs);
    this.#unreliableMs += outageMs;
    // It begins when it has found the broker again; the others have only to go on.
    if (restarted !== undefined) this.#troubledMs.set(restarted, this.#set.time.nowMs);
    await this.#expectOrder();
  }

  result(): ScheduleResult {
    const { seed } = this.#options;
    const trace = createHash('sha256').update(this.#trace.join('\n')).digest('hex');
    return { seed, violations: [...new Set(this.violations)], trace };
  }

  #noteTrouble(): void {
    const { nowMs } = this.#set.time;
    for (const id of this.#ids)
      if (!this.#set.isAgentRunning(id) || !this.#set.isLinked(id)) this.#troubledMs.set(id, nowMs);
    if (this.#lossy.rates !== quiet) this.#unreliableMs = nowMs;
  }

  /**
   * A member that has run and been connected for long is never called stale, also not by one that was cut off itself. An
   * agent that starts begins with the verdicts of its run before: those are not new.
   */
  #hear(line: string): void {
    if (!line.includes('"lease verdict"') || !line.includes('"stale"') || line.includes('"remembered"')) return;
    const { cluster, member } = JSON.parse(line) as { cluster: string; member: string };
    const { nowMs } = this.#set.time;
    const isWell = this.#set.isAgentRunning(member) && this.#set.isLinked(member);
    const sinceMs = Math.max(this.#troubledMs.get(member) ?? 0, this.#unreliableMs);
    if (isWell && nowMs - sinceMs > wellMs)
      this.violations.push(
        `${cluster} calls ${member} stale, which has been well for ${Math.round(nowMs - sinceMs)} ms`,
      );
  }

  #say(text: string): void {
    this.#options.onStep?.(`${Math.round(this.#set.time.nowMs)} ms: ${text}`);
  }

  /** Waits until everything is in order, but not for ever. One run in eight waits to the end: order must also last. */
  async #expectOrder(): Promise<void> {
    const untilMs = this.#set.time.nowMs + calmMsMax;
    const isPatient = this.#options.seed % 8 === 0;
    for (;;) {
      await this.#set.time.advance(isPatient ? calmMsMax : calmMsMin);
      const found = await findViolations(this.#set, await readTruth(this.#set, this.#spec));
      if (found.length === 0) return;
      if (this.#set.time.nowMs >= untilMs) return void this.violations.push(...found);
    }
  }

  async #checkAddresses(id: string): Promise<void> {
    const { revision } = this.#set.home(id);
    if (this.#checkedRevisions.get(id) === revision) return;
    this.#checkedRevisions.set(id, revision);
    const found = await addressViolations(this.#set, { id });
    this.violations.push(...found.filter((text) => text.includes('is held by')));
  }

  /** Whether allowed or not: no agent even tries to write where it has no business. */
  #watchWrite(user: string, asked: Attributes): void {
    const { verb, namespace, resource, subresource } = asked;
    if (!user.startsWith('agent-') || ['get', 'list', 'watch'].includes(verb)) return;
    const own = memberNamespace(user.slice('agent-'.length));
    if (namespace === own || (namespace === setName && resource === 'serviceimports')) return;
    if (isPlacementStatus({ namespace, resource, subresource }) || isOwnReport(user, asked)) return;
    this.violations.push(`${user} tried to ${verb} ${resource} in ${namespace}`);
  }

  #traced(home: string, handler: Parameters<LossyNetwork['wrap']>[0]): typeof handler {
    return async (request) => {
      const who = agentOf(request);
      this.#trace.push(`${this.#set.time.nowMs} ${who} ${home} ${request.method} ${request.path}`);
      this.#countWrite(home, request);
      const response = await handler(request);
      if (isWrite(request)) this.#trace.push(`${this.#set.time.nowMs} ${who} ${response.status}`);
      return response;
    };
  }

  #countWrite(home: string, { method, path }: HttpRequest): void {
    if ((method !== 'PUT' && method !== 'DELETE') || /\/(heartbeats|livenessreports)\//.test(path)) return;
    const what = `${method} ${path} at ${home}`;
    const count = (this.#writes.get(what) ?? 0) + 1;
    this.#writes.set(what, count);
    if (count === writesMax) this.violations.push(`${count} times ${what}`);
  }

  /** Addresses aside: one that is freed by time may reach an import that waits for it. */
  async #homeContents(): Promise<string> {
    const lines: string[] = [];
    for (const id of this.#ids) {
      const { admin } = this.#set.home(id);
      for (const { metadata, spec, status } of (await admin.list<ServiceImport>(serviceImportType)).items) {
        lines.push(
          `${id} import ${metadata.name} ${JSON.stringify({ ...spec, ips: undefined })} of ${JSON.stringify(status?.clusters)}`,
        );
      }
      for (const { metadata } of (await admin.list(endpointSliceType)).items) {
        lines.push(`${id} slice ${metadata.name}@${metadata.resourceVersion}`);
      }
    }
    return lines.sort().join(', ');
  }
}

// No two clocks agree, some are hours off, and they drift a hundred times worse than real ones. A process has the same
// clock after a restart.
function randomClocks(seed: number): (name: string) => VirtualWorldOptions {
  const random = seededRandom(seed + 0x9e3779b9);
  const clocks = new Map<string, VirtualWorldOptions>();
  return (name) => {
    const known = clocks.get(name);
    if (known !== undefined) return known;
    const skewMsMax = random() < 0.2 ? 3 * 3_600_000 : 2_000;
    const clock = { wallSkewMs: Math.round((random() * 2 - 1) * skewMsMax), clockRate: 1 + (random() - 0.5) * 0.02 };
    clocks.set(name, clock);
    return clock;
  };
}

// Short leases, so that a run of a minute sees many; a small range, so that addresses collide and run out.
function randomSpec(seed: number): ClusterSetSpec {
  const bit = (shift: number, count: number) => Math.floor(seed / 3 / 2 ** shift) % count;
  return {
    ports: bit(0, 2) === 0 ? 'union' : 'intersection',
    endpoints: bit(1, 4) === 0 ? 'ClusterIP' : 'Pods',
    clusterSetIP: (['none', 'allocate', 'derived', 'allocate', 'allocate'] as const)[bit(3, 5)],
    staleness: (['Withdraw', 'NotReady', 'Keep', 'Withdraw'] as const)[bit(2, 4)],
    lease: { renewSeconds: 5, durationSeconds: 15, holdDownSeconds: 5, holdDownMaxSeconds: 10 },
    addressRanges: { clusterSet: ['243.0.0.0/30'] },
    addressHoldSeconds: bit(4, 2) === 0 ? 5 : 3600,
  };
}
