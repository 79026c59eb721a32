// What a node holds of one endpoint, as a machine: what the kernel counted and what probes showed come in, and it answers, is suspected
// or is silent. Pure; time comes in.
//
// Connections without an answer raise a suspicion, and a probe of the node itself confirms it: what one Pod may not reach is left to
// that Pod. An answer of any kind ends both. An endpoint that has never answered a probe may refuse the node alone, so it is also
// tried again by giving it connections, after a longer time.

export type Verdict =
  | {
      readonly kind: 'answers';
      /** No suspicion before: a probe has just been answered. */
      readonly trustedUntilMs: number;
      /** How often it was tried while it was silent last, and until when that counts. */
      readonly lapses: number;
      readonly lapsesUntilMs: number;
    }
  | {
      readonly kind: 'suspected';
      readonly sinceMs: number;
      readonly cause: Cause;
      readonly failures: number;
      readonly lapses: number;
      /** When the probe under way was asked for. */
      readonly askedMs: number | undefined;
    }
  | {
      readonly kind: 'silent';
      readonly sinceMs: number;
      readonly lapses: number;
      readonly nextProbeMs: number;
      /** When it gets connections again without an answered probe; never if it has answered probes. */
      readonly trialMs: number;
      readonly askedMs: number | undefined;
    };

/** `Unanswered` and `Refused` are of clients' connections, `Probe` is of a probe that was made without any. */
type Cause = 'Unanswered' | 'Refused' | 'Probe';

export type Sight =
  /** Since the last look. */
  | { readonly kind: 'counted'; readonly tried: number; readonly answered: number; readonly refused: number }
  | { readonly kind: 'asked' }
  /** The probe could not be made. */
  | { readonly kind: 'not asked' }
  | { readonly kind: 'probed'; readonly isAnswered: boolean };

export interface Circumstances {
  readonly nowMs: number;
  /** To its cluster; undefined if no probe there was ever answered. */
  readonly rttMs: number | undefined;
  /** Whether this endpoint has ever answered a probe. */
  readonly hasAnsweredProbe: boolean;
}

export const unknownVerdict: Verdict = { kind: 'answers', trustedUntilMs: 0, lapses: 0, lapsesUntilMs: 0 };

/** After an answered probe. */
const trustMs = 1_000;
/** An answer may take so long where the distance is not known. */
const unknownRttMs = 1_500;
const firstRetryMs = 1_000;
const retryMsMax = 30_000;
const firstTrialMs = 60_000;
const trialMsMax = 600_000;
/** One that was silent within this time is tried again as late as then. */
const relapseMs = 60_000;
/** Without a client's connection one failed probe proves nothing. */
const probesAlone = 2;

export function stepVerdict(verdict: Verdict, sight: Sight, circumstances: Circumstances): Verdict {
  const { nowMs } = circumstances;
  if (sight.kind === 'asked' || sight.kind === 'not asked')
    return verdict.kind === 'answers' ? verdict : { ...verdict, askedMs: sight.kind === 'asked' ? nowMs : undefined };
  if (sight.kind === 'counted') return counted(verdict, sight, circumstances);
  if (sight.isAnswered) return answering(verdict, circumstances);
  switch (verdict.kind) {
    case 'answers':
      // A probe that was never answered may be forbidden: it shows nothing by itself.
      return circumstances.hasAnsweredProbe
        ? { kind: 'suspected', sinceMs: nowMs, cause: 'Probe', failures: 1, lapses: verdict.lapses, askedMs: undefined }
        : verdict;
    case 'suspected':
      return concluded({ ...verdict, failures: verdict.failures + 1, askedMs: undefined }, circumstances);
    case 'silent': {
      const lapses = verdict.lapses + 1;
      return { ...verdict, lapses, nextProbeMs: nowMs + retryMs(lapses), askedMs: undefined };
    }
  }
}

/** When a probe is wanted; undefined if none is. */
export function probeDueMs(verdict: Verdict): number | undefined {
  if (verdict.kind === 'answers' || verdict.askedMs !== undefined) return undefined;
  return verdict.kind === 'silent' ? verdict.nextProbeMs : verdict.sinceMs;
}

function counted(
  verdict: Verdict,
  { tried, answered, refused }: Extract<Sight, { kind: 'counted' }>,
  circumstances: Circumstances,
): Verdict {
  const { nowMs } = circumstances;
  if (answered > 0) return verdict.kind === 'answers' ? verdict : answering(verdict, circumstances, 0);
  switch (verdict.kind) {
    case 'answers': {
      if (tried === 0 || nowMs < verdict.trustedUntilMs) return verdict;
      const lapses = nowMs < verdict.lapsesUntilMs ? verdict.lapses : 0;
      const cause = refused > 0 ? 'Refused' : 'Unanswered';
      return { kind: 'suspected', sinceMs: nowMs, cause, failures: 0, lapses, askedMs: undefined };
    }
    case 'suspected': {
      const cause = refused > 0 ? 'Refused' : tried > 0 && verdict.cause === 'Probe' ? 'Unanswered' : verdict.cause;
      return concluded({ ...verdict, cause }, circumstances);
    }
    case 'silent':
      return nowMs >= verdict.trialMs ? answering(verdict, circumstances, 0) : verdict;
  }
}

/** Both the clients' connections and the node's own probe have failed. */
function concluded(verdict: Extract<Verdict, { kind: 'suspected' }>, circumstances: Circumstances): Verdict {
  const { sinceMs, cause, failures, lapses } = verdict;
  const { nowMs, rttMs, hasAnsweredProbe } = circumstances;
  // The answer to the last attempt may be under way.
  const patienceMs = cause === 'Unanswered' ? (rttMs ?? unknownRttMs) : 0;
  if (failures < (cause === 'Probe' ? probesAlone : 1) || nowMs - sinceMs < patienceMs) return verdict;
  return {
    kind: 'silent',
    sinceMs,
    lapses,
    nextProbeMs: nowMs + retryMs(lapses),
    trialMs: hasAnsweredProbe
      ? Number.POSITIVE_INFINITY
      : nowMs + Math.min(trialMsMax, firstTrialMs * 2 ** Math.min(lapses, 10)),
    askedMs: undefined,
  };
}

function answering({ kind, lapses }: Verdict, { nowMs }: Circumstances, trustedMs = trustMs): Verdict {
  const isBack = kind === 'silent';
  return {
    kind: 'answers',
    trustedUntilMs: nowMs + trustedMs,
    lapses: isBack ? lapses + 1 : lapses,
    lapsesUntilMs: nowMs + relapseMs,
  };
}

function retryMs(lapses: number): number {
  return Math.min(retryMsMax, firstRetryMs * 2 ** Math.min(lapses, 10));
}
