// How far other clusters are from this node and how many first packets are lost on the way, from the node's own probes. Slow and lossy
// paths are reported and never left. Pure.

interface PathProbe {
  /** From the first packet of the connection that was answered. */
  readonly tookMs: number;
  /** An earlier attempt of the same probe was not answered. */
  readonly isSecond: boolean;
}

export interface ProbeRequest {
  readonly address: string;
  readonly port: number;
  readonly waitMs: number;
}

/** `unknown` if this machine could not even try. */
export type ProbeResult = PathProbe | 'unanswered' | 'unknown';

interface Path {
  readonly rttMs: number;
  /** Part of probes whose first attempt was not answered, 0 to 1. */
  readonly loss: number;
  readonly probes: number;
}

const rememberedMax = 20;
/** The distance is the least of these: load only ever adds to it. */
const recentMax = 8;
const clustersMax = 1_000;
/** From here on a path is called slow or lossy. */
const slowMs = 300;
const lossyPart = 0.1;
const judgedMin = 10;

interface Noted extends PathProbe {
  /** It took longer than a probe would have waited: from here on the way is another one. */
  readonly isFarther: boolean;
}

export class Paths {
  readonly #clusters = new Map<string, Noted[]>();

  note(cluster: string, probe: PathProbe): void {
    const known = this.#clusters.get(cluster) ?? [];
    known.push({ ...probe, isFarther: probe.tookMs > probeWaitMs(this.rttMs(cluster)) });
    if (known.length > rememberedMax) known.shift();
    if (this.#clusters.size < clustersMax || this.#clusters.has(cluster)) this.#clusters.set(cluster, known);
  }

  rttMs(cluster: string): number | undefined {
    const known = this.#clusters.get(cluster);
    if (known === undefined) return undefined;
    const recent = known.slice(Math.max(0, known.length - recentMax, lastFarther(known)));
    return Math.min(...recent.map(({ tookMs }) => tookMs));
  }

  /** 0 while nothing is measured. */
  longestRttMs(): number {
    let longest = 0;
    for (const cluster of this.#clusters.keys()) longest = Math.max(longest, this.rttMs(cluster)!);
    return longest;
  }

  *entries(): IterableIterator<[cluster: string, path: Path]> {
    for (const [cluster, known] of this.#clusters) {
      const lost = known.filter(({ isSecond }) => isSecond).length;
      yield [cluster, { rttMs: this.rttMs(cluster)!, loss: lost / known.length, probes: known.length }];
    }
  }
}

function lastFarther(known: readonly Noted[]): number {
  return known.findLastIndex(({ isFarther }) => isFarther);
}

/** For people. */
export function describePath({ rttMs, loss, probes }: Path): object {
  const isLossy = probes >= judgedMin && loss >= lossyPart;
  const called = [...(rttMs >= slowMs ? ['slow'] : []), ...(isLossy ? ['lossy'] : [])];
  return {
    rttMs: Math.round(rttMs * 10) / 10,
    lost: `${Math.round(loss * probes)} of ${probes}`,
    ...(called.length === 0 ? {} : { called: called.join(', ') }),
  };
}

/** How long a probe waits: long enough for an answer to its second attempt, which is made half-way. */
export function probeWaitMs(rttMs: number | undefined): number {
  return rttMs === undefined ? 2_000 : Math.min(longestProbeMs, Math.max(700, 2 * rttMs + 300));
}

/** For an endpoint that is left already: nothing waits for the outcome, and its cluster may be farther away than it was. */
export const longestProbeMs = 3_000;
