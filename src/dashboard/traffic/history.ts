// The last 24 hours of each cluster in bounded memory: an hour in steps of ten seconds, a day in steps of two minutes. Times
// are of a clock that never goes back, so a wall clock that jumps moves no point. Pure.

import { type HistoryRange, type Measure, measures } from '../wire/views.ts';

interface RangeShape {
  readonly stepMs: number;
  readonly steps: number;
}

const shapes: Readonly<Record<HistoryRange, RangeShape>> = {
  hour: { stepMs: 10_000, steps: 360 },
  day: { stepMs: 120_000, steps: 720 },
};
const ranges = Object.keys(shapes) as HistoryRange[];
/** 60 KB each; those that came first stay. */
const clustersMax = 300;

export class History {
  readonly #clusters = new Map<string, Readonly<Record<HistoryRange, Ring>>>();

  /** A measure that is absent or null is not known. */
  note(cluster: string, figures: { readonly [Name in Measure]?: number | null | undefined }, nowMs: number): void {
    let rings = this.#clusters.get(cluster);
    if (rings === undefined) {
      if (this.#clusters.size >= clustersMax) return;
      rings = { hour: new Ring(shapes.hour), day: new Ring(shapes.day) };
      this.#clusters.set(cluster, rings);
    }
    for (const [index, measure] of measures.entries()) {
      const value = figures[measure];
      if (typeof value !== 'number' || !Number.isFinite(value)) continue;
      for (const range of ranges) rings[range].note(index, value, nowMs);
    }
  }

  /** Means of each step, the oldest first; the last one is of now. */
  read(cluster: string, options: { readonly measure: Measure; readonly range: HistoryRange; readonly nowMs: number }) {
    const { measure, range, nowMs } = options;
    return this.#clusters.get(cluster)?.[range].read(measures.indexOf(measure), nowMs) ?? [];
  }
}

export function stepMsOf(range: HistoryRange): number {
  return shapes[range].stepMs;
}

/** A place keeps the number of the step that it was written in: an older one counts as empty. */
class Ring {
  readonly #shape: RangeShape;
  readonly #step: Float64Array;
  readonly #sum: Float32Array;
  readonly #count: Uint16Array;

  constructor(shape: RangeShape) {
    this.#shape = shape;
    const places = shape.steps * measures.length;
    this.#step = new Float64Array(places).fill(-1);
    this.#sum = new Float32Array(places);
    this.#count = new Uint16Array(places);
  }

  note(measure: number, value: number, nowMs: number): void {
    const step = Math.floor(nowMs / this.#shape.stepMs);
    const place = this.#placeOf(measure, step);
    if (this.#step[place] !== step) {
      this.#step[place] = step;
      this.#sum[place] = 0;
      this.#count[place] = 0;
    }
    if (this.#count[place] === 65_535) return;
    this.#sum[place]! += value;
    this.#count[place]! += 1;
  }

  read(measure: number, nowMs: number): (number | null)[] {
    const { steps, stepMs } = this.#shape;
    const last = Math.floor(nowMs / stepMs);
    return Array.from({ length: steps }, (_, index) => {
      const step = last - steps + 1 + index;
      const place = this.#placeOf(measure, step);
      if (step < 0 || this.#step[place] !== step) return null;
      return Number((this.#sum[place]! / this.#count[place]!).toPrecision(4));
    });
  }

  #placeOf(measure: number, step: number): number {
    return measure * this.#shape.steps + (((step % this.#shape.steps) + this.#shape.steps) % this.#shape.steps);
  }
}
