// Compares answers with what was done: a fault that lasts must be told in time, and every line must have a cause. Pure; times are
// milliseconds of one monotonic clock.

import { type Asker, askers, expectedOf, explains, hides } from './expectations.ts';
import { type Fault, nameOf } from './faults.ts';
import type { Starved } from './machine.ts';

/** One answer of one asker. A line is a code and its subject, or a state that is not fine. */
export interface Answer {
  readonly asker: Asker;
  readonly askedMs: number;
  readonly answeredMs: number;
  readonly says: readonly string[];
}

/** A fault that was made. It is there for sure from `madeMs` to `mendingMs`, and perhaps from `beganMs` to `mendedMs`. */
export interface MadeFault {
  readonly fault: Fault;
  readonly beganMs: number;
  readonly madeMs: number;
  /** Infinity while it lasts. */
  mendingMs: number;
  mendedMs: number;
}

export interface Violation {
  readonly kind: 'false fine' | 'false alarm' | 'missing' | 'no answer';
  readonly asker: Asker;
  readonly atMs: number;
  readonly text: string;
}

export interface Bounds {
  /** A fault that has lasted so long must be told. */
  readonly toldMsMax: number;
  /** A fault that has been mended for so long explains nothing any more. */
  readonly goneMsMax: number;
}

export const bounds: Bounds = { toldMsMax: 15_000, goneMsMax: 30_000 };

interface Telling {
  readonly made: MadeFault;
  /** When each asker was first asked after the fault and told it, since it was made. */
  readonly toldMs: Map<Asker, number>;
  /** Until when each asker told it, since it was mended. */
  readonly goneMs: Map<Asker, number>;
  /** Those that have not told it any more. */
  readonly ended: Set<Asker>;
}

export class Model {
  readonly #bounds: Bounds;
  /** Lines of each asker while nothing is wrong, which have to stay. */
  readonly #usual = new Map<Asker, ReadonlySet<string>>();
  readonly #tellings: Telling[] = [];
  readonly #starved: () => readonly Starved[];
  /** Answers that were not judged, because the machine did not let programs run. */
  unjudged = 0;
  readonly violations: Violation[] = [];

  constructor(limits: Bounds = bounds, starved: () => readonly Starved[] = () => []) {
    this.#bounds = limits;
    this.#starved = starved;
  }

  /** What it says now is true and stays so. */
  learn(asker: Asker, says: readonly string[]): void {
    this.#usual.set(asker, new Set(says));
  }

  begin(made: MadeFault): void {
    this.#tellings.push({ made, toldMs: new Map(), goneMs: new Map(), ended: new Set() });
  }

  get tellings(): readonly Telling[] {
    return this.#tellings;
  }

  /** Those that have to tell the fault, whatever other faults there are. */
  concernedBy({ fault }: MadeFault): readonly Asker[] {
    const others = this.#tellings.filter(({ made }) => made.fault !== fault);
    return askers.filter(
      (asker) =>
        expectedOf(fault).some(({ by }) => by.test(asker)) &&
        !others.some(({ made }) => hides(made.fault, fault, asker)),
    );
  }

  /** Whether these answers tell all faults that were made, each by everybody whom it concerns. */
  areAllTold(latest: (asker: Asker) => Answer | undefined): boolean {
    return this.#tellings.every(({ made }) =>
      this.concernedBy(made).every((asker) => {
        const answer = latest(asker);
        return answer !== undefined && this.#isTold(made, answer);
      }),
    );
  }

  #isTold({ fault }: MadeFault, { asker, says }: Answer): boolean {
    const usual = this.#usual.get(asker);
    return expectedOf(fault).some(
      ({ by, line }) => by.test(asker) && says.some((one) => !usual?.has(one) && line.test(one)),
    );
  }

  /** Whether an answer is as usual. */
  isUsual({ asker, says }: Answer): boolean {
    const usual = this.#usual.get(asker);
    return usual !== undefined && usual.size === new Set(says).size && says.every((line) => usual.has(line));
  }

  /** Returns what is wrong with the answer, and keeps it. */
  judge(answer: Answer): readonly Violation[] {
    // Who told a fault has told it, whatever the machine did.
    const fines = this.#falseFines(answer);
    if (this.#isStarved(answer)) {
      this.unjudged += 1;
      return [];
    }
    const found = [...fines, ...this.#falseAlarms(answer), ...this.#missing(answer)];
    if (answer.answeredMs - answer.askedMs > this.#bounds.toldMsMax)
      found.push({
        ...{ kind: 'no answer' as const, asker: answer.asker, atMs: answer.askedMs },
        text: `it took ${seconds(answer.answeredMs - answer.askedMs)} to answer`,
      });
    this.violations.push(...found);
    return found;
  }

  #falseFines(answer: Answer): Violation[] {
    const { asker, askedMs, answeredMs, says } = answer;
    return this.#tellings.flatMap((telling) => {
      const { made, toldMs, goneMs } = telling;
      if (answeredMs < made.madeMs || !expectedOf(made.fault).some(({ by }) => by.test(asker))) return [];
      const isTold = this.#isTold(made, answer);
      if (askedMs >= made.mendedMs) {
        if (isTold && !telling.ended.has(asker)) goneMs.set(asker, askedMs - made.mendedMs);
        if (!isTold) telling.ended.add(asker);
        return [];
      }
      if (isTold && !toldMs.has(asker)) toldMs.set(asker, Math.max(0, askedMs - made.madeMs));
      if (isTold || answeredMs > made.mendingMs) return [];
      const ageMs = askedMs - this.#visibleSinceMs(made, asker);
      if (ageMs <= this.#bounds.toldMsMax) return [];
      const text = `${nameOf(made.fault)} for ${seconds(ageMs)}, and it says ${says.join(', ') || 'nothing'}`;
      return [{ kind: 'false fine' as const, asker, atMs: askedMs, text }];
    });
  }

  /** What follows from standing still lasts as long as what follows from a fault. */
  #isStarved({ askedMs, answeredMs }: Answer): boolean {
    const { goneMsMax } = this.#bounds;
    return this.#starved().some(({ fromMs, toMs }) => fromMs <= answeredMs && askedMs <= toMs + goneMsMax);
  }

  /** A fault that another one hides has to be told from when that one is gone. */
  #visibleSinceMs(made: MadeFault, asker: Asker): number {
    let sinceMs = made.madeMs;
    for (const { made: other } of this.#tellings) {
      if (other === made || other.mendedMs <= made.madeMs || other.beganMs >= made.mendingMs) continue;
      if (hides(other.fault, made.fault, asker)) sinceMs = Math.max(sinceMs, other.mendedMs);
    }
    return sinceMs;
  }

  #falseAlarms({ asker, askedMs, answeredMs, says }: Answer): Violation[] {
    const usual = this.#usual.get(asker);
    const near = this.#near(askedMs, answeredMs);
    return says
      .filter((line) => !usual?.has(line) && !near.some(({ fault }) => explains(fault, asker, line)))
      .map((line) => ({
        ...{ kind: 'false alarm' as const, asker, atMs: askedMs },
        text: `it says ${line}, ${near.length === 0 ? 'and nothing is wrong' : `which ${near.map(({ fault }) => nameOf(fault)).join(', ')} does not explain`}`,
      }));
  }

  #missing({ asker, askedMs, answeredMs, says }: Answer): Violation[] {
    if (this.#near(askedMs, answeredMs).length > 0) return [];
    const lines = new Set(says);
    return [...(this.#usual.get(asker) ?? [])]
      .filter((line) => !lines.has(line))
      .map((line) => ({ kind: 'missing', asker, atMs: askedMs, text: `it no longer says ${line}` }));
  }

  /** Faults that last, or did until a short while before the question. */
  #near(askedMs: number, answeredMs: number): MadeFault[] {
    return this.#tellings
      .map(({ made }) => made)
      .filter(({ beganMs, mendedMs }) => beganMs <= answeredMs && askedMs <= mendedMs + this.#bounds.goneMsMax);
  }
}

export const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
