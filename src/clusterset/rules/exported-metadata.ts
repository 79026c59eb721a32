// Labels and annotations that an export gives to its import: only those that an object can have. Pure. Exporters
// report what they leave out; readers leave out the same, so that no record spoils an import.

import { compareText } from '../../base/compare-text.ts';
import { clipText } from '../../base/text/clip-text.ts';
import { isLabelValue, isQualifiedName } from '../../kube/objects/names.ts';

export interface ExportedMetadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The parts left out, and why. */
  readonly notes: readonly string[];
}

/** As Kubernetes has it, keys and values together. */
export const annotationBytesMax = 256 * 1024;
/** Limit for each of labels and annotations; no known use needs more. */
const pairsMax = 256;
const notesMax = 5;
/** What an importing cluster's own agent says of an import, such as its routing or its derived Service: no exporter writes that. */
const ownPrefixes = ['portolan.dev/', 'multicluster.kubernetes.io/'];

export function readExportedMetadata(asked: {
  readonly labels?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}): ExportedMetadata {
  const labels = keepPairs('label', asked.labels ?? {}, (key, value) => [
    ...isQualifiedName(key),
    ...isLabelValue(value),
  ]);
  const annotations = keepPairs('annotation', asked.annotations ?? {}, (key) => [
    ...isQualifiedName(key.toLowerCase()),
    ...ownPrefixes.filter((prefix) => key.toLowerCase().startsWith(prefix)).map((prefix) => `${prefix} is for agents`),
  ]);
  const bytes = Object.entries(annotations.kept).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
  const isTooLarge = bytes > annotationBytesMax;
  const tooLarge = `exported annotations left out: ${bytes} bytes, an object can have ${annotationBytesMax}`;
  return {
    labels: labels.kept,
    annotations: isTooLarge ? {} : annotations.kept,
    notes: [...labels.notes, ...annotations.notes, ...(isTooLarge ? [tooLarge] : [])],
  };
}

function keepPairs(
  what: string,
  asked: Readonly<Record<string, unknown>>,
  problems: (key: string, value: string) => readonly string[],
): { readonly kept: Record<string, string>; readonly notes: readonly string[] } {
  const pairs: [string, string][] = [];
  const notes: string[] = [];
  for (const [key, value] of Object.entries(asked).sort(([a], [b]) => compareText(a, b))) {
    const [problem] = typeof value === 'string' ? problems(key, value) : ['must be text'];
    const why = problem ?? (pairs.length < pairsMax ? undefined : `there are more than ${pairsMax}`);
    if (why === undefined) pairs.push([key, value as string]);
    else notes.push(`exported ${what} ${say(`${key}=${value}`)} left out: ${why}`);
  }
  const more = notes.length - notesMax;
  const shown = more > 0 ? [...notes.slice(0, notesMax), `${more} more exported ${what}s left out`] : notes;
  return { kept: Object.fromEntries(pairs), notes: shown };
}

function say(pair: string): string {
  return JSON.stringify(clipText(pair, 100));
}
