// A run as a table: faults, how long it took until they were told and by whom, and what was wrong. Pure.

import { formatTable } from '../../src/cli/table.ts';
import { nameOf } from './faults.ts';
import { seconds } from './model.ts';
import type { TruthResult } from './run.ts';

interface FaultRow {
  readonly fault: string;
  readonly lastedSeconds: number;
  /** Seconds until an asker told it, by asker. */
  readonly told: Readonly<Record<string, number>>;
  /** Seconds after the end at which an asker still told it. */
  readonly stillTold: Readonly<Record<string, number>>;
}

export function rowsOf({ model }: TruthResult): FaultRow[] {
  return model.tellings.map(({ made, toldMs, goneMs }) => ({
    fault: nameOf(made.fault),
    lastedSeconds: round(made.mendedMs - made.madeMs),
    told: Object.fromEntries([...toldMs].map(([asker, ms]) => [asker, round(ms)])),
    stillTold: Object.fromEntries([...goneMs].map(([asker, ms]) => [asker, round(ms)])),
  }));
}

export function reportText(result: TruthResult): string[] {
  const { model, answers, violations, stallsMs, machine } = result;
  const table = model.tellings.map(({ made, toldMs, goneMs }) => {
    const times = [...toldMs].sort((a, b) => a[1] - b[1]);
    const [first, last] = [times[0], times.at(-1)];
    const gone = Math.max(0, ...goneMs.values());
    return [
      nameOf(made.fault),
      seconds(made.mendedMs - made.madeMs),
      first === undefined ? '-' : `${seconds(first[1])} (${first[0]})`,
      last === undefined ? '-' : `${seconds(last[1])} (${last[0]})`,
      `${times.length}`,
      seconds(gone),
    ];
  });
  const byKind = Map.groupBy(
    violations,
    ({ kind, asker, text }) => `${kind}: ${asker}: ${text.replace(/for [\d.]+ s/, '')}`,
  );
  const stalls =
    stallsMs.length === 0
      ? ''
      : `; this machine stalled ${stallsMs.length} times, for up to ${seconds(Math.max(...stallsMs))}`;
  return [
    ...formatTable(['FAULT', 'LASTED', 'FIRST TOLD', 'LAST TOLD', 'BY', 'GONE AFTER'], table),
    '',
    ...[...byKind].map(([what, group]) => `${what} (${group.length} answers)`),
    `${table.length} faults, ${answers} answers${stalls}`,
    ...(model.unjudged === 0
      ? []
      : [
          `not judged: ${model.unjudged} answers, because this machine gave programs less than a twelfth of a processor ${machine.starved.length} times, down to 1/${Math.round(machine.slowest)}`,
        ]),
    verdictOf(result, byKind.size),
  ];
}

function verdictOf(result: TruthResult, kinds: number): string {
  const { violations, limits } = result;
  if (violations.length > 0) return `${kinds} violations`;
  if (!isValid(result))
    return 'too few answers could be judged: this run shows nothing, repeat it on a quieter machine';
  return `no false fine older than ${seconds(limits.toldMsMax)}, no false alarm later than ${seconds(limits.goneMsMax)} after a fault`;
}

const round = (ms: number) => Math.round(ms / 100) / 10;

/** A run in which the machine hardly let programs run is none. */
export function isValid({ model, answers }: TruthResult): boolean {
  return model.unjudged <= 0.2 * answers;
}
