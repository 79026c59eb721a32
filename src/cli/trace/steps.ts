// The way of one service from its exports to answers and connections in one cluster, step by step: when each happened, and at
// which it stops. Pure.

import type { TraceStep } from '../../base/telemetry/steps.ts';
import { formatElapsed } from '../../base/text/elapsed.ts';
import type { Read } from '../../doctor/facts.ts';
import type { ExporterFacts, ImporterFacts, Mark, TraceFacts } from './facts.ts';

export interface Step {
  readonly step: TraceStep;
  /** The cluster or part where it happens. */
  readonly where: string;
  readonly state: 'ok' | 'stopped' | 'unchecked';
  readonly at: string | undefined;
  readonly detail: string;
  /** The next step where the trace stops, or how to get it checked. */
  readonly next: string;
}

export function traceSteps(facts: TraceFacts): Step[] {
  const { exporters, merged, importer, from } = facts;
  const counted = exporters.filter(({ leftOut, record }) => leftOut === '' && record !== undefined);
  return [
    ...exporters.flatMap((one) => exporterSteps(one)),
    mark('merged', 'broker', merged, {
      missing: 'there is no merged view',
      next: counted.length === 0 ? 'mend the steps above' : 'look at the agents of the exporting clusters',
    }),
    ...('why' in importer
      ? [unchecked('import', from, importer.why, `give the kubeconfig of ${from} with --kubeconfig`)]
      : importerSteps(from, importer.value, counted)),
  ];
}

function exporterSteps({ cluster, home, record, leftOut }: ExporterFacts): Step[] {
  const atHome =
    'why' in home
      ? [unchecked('export', cluster, home.why, `give the kubeconfig of ${cluster} with --kubeconfig`)]
      : [
          exportStep(cluster, home.value.export),
          endpointStep('endpoints', cluster, home.value.endpoints, 'its Service'),
        ];
  const written = mark('record', `broker, of ${cluster}`, record, {
    missing: 'nothing was published',
    next: `look at portolan agent in ${cluster}, and at the conditions of the ServiceExport`,
  });
  if (written.state !== 'ok' || leftOut === '') return [...atHome, written];
  return [
    ...atHome,
    {
      ...written,
      state: 'stopped',
      detail: `${written.detail}; ${leftOut}`,
      next: `look at portolan agent in ${cluster}`,
    },
  ];
}

function exportStep(cluster: string, found: (Mark & { readonly problem: string }) | undefined): Step {
  const step = mark('export', cluster, found, { missing: 'there is no ServiceExport', next: 'portolan export' });
  if (found === undefined || found.problem === '') return step;
  return { ...step, state: 'stopped', detail: found.problem, next: 'mend what its condition names' };
}

function endpointStep(
  step: Step['step'],
  where: string,
  found: (Mark & { readonly ready: number }) | undefined,
  whose: string,
): Step {
  const missing = `${whose} has no endpoints`;
  const next = 'start the workload, or portolan register a process';
  const made = mark(step, where, found, { missing, next });
  return found?.ready === 0 ? { ...made, state: 'stopped', detail: `${whose} has no ready endpoint`, next } : made;
}

function importerSteps(from: string, facts: ImporterFacts, counted: readonly ExporterFacts[]): Step[] {
  const agent = `look at portolan agent in ${from}`;
  const imported = mark('import', from, facts.import, { missing: 'there is no ServiceImport', next: agent });
  const lacking = counted.filter(({ cluster }) => !(facts.import?.clusters ?? []).includes(cluster));
  const isBehind = facts.import !== undefined && lacking.length > 0;
  return [
    isBehind
      ? {
          ...imported,
          state: 'stopped',
          detail: `it lacks ${lacking.map(({ cluster }) => cluster).join(', ')}`,
          next: agent,
        }
      : imported,
    ...counted.map(({ cluster, record }) => {
      const slices = facts.slices.get(cluster);
      const step = mark('slices', `${from}, of ${cluster}`, slices, { missing: 'none were copied', next: agent });
      const isOld = slices !== undefined && record !== undefined && slices.ready !== record.ready;
      const detail = `${slices?.ready} ready, ${record?.ready} at the broker`;
      return isOld ? ({ ...step, state: 'stopped', detail, next: agent } as const) : step;
    }),
    ...hops(from, facts, counted),
    ...facts.answers.map(({ resolver, answer }) =>
      ofPart('answer', `${from}, ${resolver}`, answer, ({ isRight }) =>
        isRight ? '' : 'portolan dig explains the answer',
      ),
    ),
    ...(facts.answers.length === 0
      ? [unchecked('answer', from, 'no resolver reports in this cluster', 'portolan dig --admin URL asks another one')]
      : []),
    {
      step: 'carried',
      where: from,
      state: facts.carried.isReady ? 'ok' : 'stopped',
      at: facts.carried.at,
      detail: facts.carried.detail,
      next: facts.carried.isReady ? '' : 'run portolan proxy on each node, or let the set derive Services',
    },
    ...facts.connections.map(({ from: proxy, result }) =>
      ofPart('connection', `${from}, ${proxy}`, result, ({ problems }) =>
        problems === '' ? '' : 'portolan test connectivity',
      ),
    ),
  ];
}

/** Between the asking cluster and each exporting one; none where all share one network. */
function hops(from: string, { pairs }: ImporterFacts, counted: readonly ExporterFacts[]): Step[] {
  const exporting = new Set(counted.map(({ cluster }) => cluster));
  return pairs
    .filter(({ cluster }) => exporting.has(cluster))
    .map(({ cluster, text, isWell }) => ({
      ...{
        step: 'hop',
        where: `${from}, to ${cluster}`,
        state: isWell ? 'ok' : 'stopped',
        at: undefined,
        detail: text,
      },
      next: isWell ? '' : 'portolan doctor explains PTL0905',
    }));
}

function ofPart<T extends Mark>(
  step: Step['step'],
  where: string,
  read: Read<T>,
  nextIfWrong: (value: T) => string,
): Step {
  if ('why' in read) return unchecked(step, where, read.why, 'ask it on its own machine');
  const { at, detail } = read.value;
  const next = nextIfWrong(read.value);
  return { step, where, state: next === '' ? 'ok' : 'stopped', at, detail, next };
}

function mark(
  step: Step['step'],
  where: string,
  found: Mark | undefined,
  { missing, next }: { readonly missing: string; readonly next: string },
): Step {
  if (found === undefined) return { step, where, state: 'stopped', at: undefined, detail: missing, next };
  return { step, where, state: 'ok', at: found.at, detail: found.detail, next: '' };
}

function unchecked(step: Step['step'], where: string, why: string, next: string): Step {
  return { step, where, state: 'unchecked', at: undefined, detail: why, next };
}

/** Rows of a table: the time of each step, and how long after the earliest one it came. */
export function stepRows(steps: readonly Step[]): string[][] {
  const times = steps.map(({ at }) => Date.parse(at ?? '')).filter((ms) => !Number.isNaN(ms));
  const firstMs = Math.min(...times);
  return steps.map(({ step, where, state, at, detail, next }) => {
    const atMs = Date.parse(at ?? '');
    const after = Number.isNaN(atMs) ? '-' : `+${formatElapsed(atMs - firstMs)}`;
    return [step, where, at ?? '-', after, state, next === '' ? detail : `${detail}; next step: ${next}`];
  });
}
