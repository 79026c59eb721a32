// Knocks on a door once. The meaning of an answer for readiness is decided elsewhere.

export interface ProbeTarget {
  readonly address: string;
  readonly port: number;
  /** Absent: a TCP connection is enough. */
  readonly http?: { readonly isSecure: boolean; readonly host: string; readonly path: string };
  readonly timeoutMs: number;
}

export type ProbeAnswer = { readonly isGood: true } | { readonly isGood: false; readonly reason: string };

export interface Prober {
  /** Never rejects, and answers within the time given. */
  probe(target: ProbeTarget): Promise<ProbeAnswer>;
}
