// One run: the stage is set up, askers ask all the time, and faults come and go as the schedule has them.

import { setTimeout as pause } from 'node:timers/promises';
import { Askers } from './askers.ts';
import { type Asker, askers } from './expectations.ts';
import { type Fault, nameOf } from './faults.ts';
import { Machine } from './machine.ts';
import { type Answer, type Bounds, bounds, type MadeFault, Model, seconds, type Violation } from './model.ts';
import { schedule, type Turn } from './schedule.ts';
import { Stage } from './stage.ts';

export interface TruthOptions {
  readonly seed: number;
  /** No new fault begins after this time. */
  readonly lastsMs: number;
  /** In place of the schedule. */
  readonly turns?: Iterable<Turn>;
  /** What is told while nothing is wrong, in place of what is told when nothing changes any more. */
  readonly usual?: Readonly<Partial<Record<Asker, readonly string[]>>>;
  /** A fault is mended as soon as everybody has told every fault, and not only when its time is over. */
  readonly mendsWhenTold?: boolean;
  readonly hasPeers?: boolean;
  readonly say: (line: string) => void;
}

export interface TruthResult {
  readonly seed: number;
  readonly model: Model;
  readonly answers: number;
  readonly violations: readonly Violation[];
  readonly leftOut: readonly string[];
  /** Times at which this process itself could not run: others could not either. */
  readonly stallsMs: readonly number[];
  readonly startedMs: number;
  readonly limits: Bounds;
  readonly machine: Pick<Machine, 'starved' | 'slowest'>;
}

const settleMsMax = 120_000;
/** Nothing changes any more when every asker has said the same for so long. */
const calmMs = 12_000;
/** For everything to be well again, after which the next fault comes all the same. */
const wellMsMax = 75_000;
const stallMsMin = 2_000;
/** Not at once: that the machine did not let programs run is known when its work has ended. */
const judgedAfterMs = 6_000;

export async function runTruth({ seed, lastsMs, say, ...options }: TruthOptions): Promise<TruthResult> {
  const { faults, leftOut } = Stage.possible();
  for (const line of leftOut) say(`left out: ${line}`);
  const machine = new Machine();
  const model = new Model(bounds, () => machine.starved);
  const latest = new Map<Asker, Latest>();
  const reported = new Set<string>();
  const waiting: Answer[] = [];
  let isJudging = false;
  let answers = 0;
  const take = (answer: Answer) => {
    answers += 1;
    const before = latest.get(answer.asker);
    const isSame = before !== undefined && before.answer.says.join('\n') === answer.says.join('\n');
    latest.set(answer.asker, { answer, sinceMs: isSame ? before.sinceMs : answer.answeredMs });
    if (isJudging) waiting.push(answer);
  };
  const judge = (untilMs: number) => {
    while (waiting.length > 0 && waiting[0]!.answeredMs <= untilMs) {
      for (const { kind, asker, text } of model.judge(waiting.shift()!)) {
        // Once, and not every second.
        const key = `${kind} ${asker} ${text.replace(/[\d.]+ s\b/g, '')}`;
        if (!reported.has(key)) say(`${kind}: ${asker}: ${text}`);
        reported.add(key);
      }
    }
  };
  const judging = setInterval(() => judge(performance.now() - judgedAfterMs), 500);
  const stalls = watchStalls();
  // Everything is ended in order, whenever that is.
  const interrupted = new AbortController();
  const stopNow = () => interrupted.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stopNow);
  const stage = await Stage.open({ hasPeers: options.hasPeers ?? true }).catch((error: unknown) => {
    machine.stop();
    stalls.stop();
    clearInterval(judging);
    throw error;
  });
  const asking = new Askers(stage, take);
  try {
    await asking.start();
    const { usual } = options;
    if (usual !== undefined) for (const asker of askers) model.learn(asker, usual[asker] ?? []);
    const isReady = ({ answer, sinceMs }: Latest, nowMs: number) =>
      usual === undefined ? nowMs - sinceMs > calmMs && !isTrouble(answer) : model.isUsual(answer);
    await untilAll(latest, isReady, interrupted.signal);
    for (const [asker, { answer }] of latest) {
      if (usual === undefined) model.learn(asker, answer.says);
      if (answer.says.length > 0) say(`usual: ${asker}: ${answer.says.join('; ')}`);
    }
    isJudging = true;
    const beganMs = performance.now();
    for (const turn of options.turns ?? schedule(faults, seed)) {
      if (performance.now() - beganMs > lastsMs || interrupted.signal.aborted) break;
      const isEnough = () => options.mendsWhenTold === true && model.areAllTold((asker) => latest.get(asker)?.answer);
      await runTurn({ stage, model, turn, say, isEnough });
      await untilWell(model, latest);
      reported.clear();
      await pause(turn.restMs);
    }
    judge(Number.POSITIVE_INFINITY);
    return {
      ...{ seed, model, answers, leftOut, violations: model.violations, stallsMs: stalls.found },
      ...{ startedMs: beganMs, limits: bounds, machine: { starved: machine.starved, slowest: machine.slowest } },
    };
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, stopNow);
    stalls.stop();
    machine.stop();
    clearInterval(judging);
    await asking.stop();
    await stage.close();
  }
}

/** Each fault for 20 s, one after the other. */
export function* oneByOne(faults: readonly Fault[]): Generator<Turn> {
  for (const fault of faults) yield { faults: [{ fault, afterMs: 0 }], holdMs: 20_000, restMs: 500, size: 0.5 };
}

interface TurnRequest {
  readonly stage: Stage;
  readonly model: Model;
  readonly turn: Turn;
  readonly say: (line: string) => void;
  /** Whether the faults have lasted long enough, before their time. */
  readonly isEnough: () => boolean;
}

async function runTurn({ stage, model, turn, say, isEnough }: TurnRequest): Promise<void> {
  const { faults, holdMs, size } = turn;
  say(`${new Date().toISOString().slice(11, 19)} ${faults.map(({ fault }) => nameOf(fault)).join(', and ')}`);
  await Promise.all(
    faults.map(async ({ fault, afterMs }) => {
      await pause(afterMs);
      const made = await make(stage, model, fault, size);
      for (const untilMs = made.madeMs + holdMs; performance.now() < untilMs && !isEnough(); ) await pause(100);
      await mend(stage, made);
    }),
  );
}

async function make(stage: Stage, model: Model, fault: Fault, size: number): Promise<MadeFault> {
  const beganMs = performance.now();
  const made = {
    fault,
    beganMs,
    madeMs: Number.POSITIVE_INFINITY,
    mendingMs: Number.POSITIVE_INFINITY,
    mendedMs: Number.POSITIVE_INFINITY,
  };
  model.begin(made);
  await stage.make(fault, size);
  made.madeMs = performance.now();
  return made;
}

async function mend(stage: Stage, made: MadeFault): Promise<void> {
  made.mendingMs = performance.now();
  await stage.mend(made.fault);
  made.mendedMs = performance.now();
}

/** What an asker says, and since when it has said the same. */
interface Latest {
  readonly answer: Answer;
  readonly sinceMs: number;
}

const isTrouble = ({ says }: Answer) => says.some((line) => /^away|^no address|^stale|^PTL0[12]/.test(line));

type IsReady = (latest: Latest, nowMs: number) => boolean;

async function untilAll(latest: ReadonlyMap<Asker, Latest>, isReady: IsReady, { aborted }: AbortSignal): Promise<void> {
  const beganMs = performance.now();
  for (;;) {
    await pause(250);
    const nowMs = performance.now();
    const all = [...latest.values()];
    if (all.length === askers.length && all.every((each) => isReady(each, nowMs))) return;
    if (aborted || nowMs - beganMs > settleMsMax) {
      const lines = all.map(({ answer }) => `${answer.asker}: ${answer.says.join('; ')}`);
      throw new Error(`not all was as usual within ${seconds(settleMsMax)}:\n${lines.join('\n')}`);
    }
  }
}

async function untilWell(model: Model, latest: ReadonlyMap<Asker, Latest>): Promise<void> {
  const beganMs = performance.now();
  while (performance.now() - beganMs < wellMsMax) {
    if ([...latest.values()].every(({ answer }) => answer.askedMs > beganMs && model.isUsual(answer))) return;
    await pause(250);
  }
}

function watchStalls(): { readonly found: number[]; stop(): void } {
  const found: number[] = [];
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (nowMs - lastMs > stallMsMin) found.push(nowMs - lastMs);
    lastMs = nowMs;
  }, 250);
  return { found, stop: () => clearInterval(timer) };
}
