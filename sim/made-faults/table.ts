// docs/faults.md: each fault with what status, doctor and conditions said of it in the run that wrote the page. Pure.

export interface FaultRow {
  readonly fault: string;
  readonly status: { readonly line: string; readonly exitCode: number };
  readonly doctor: { readonly code: string; readonly severity: string; readonly exitCode: number };
  readonly conditions: string;
}

const head = `# Faults made on purpose

Each row is made in a simulated clusterset and looked at from cluster west, then mended; sim/scenarios/doctor.test.ts writes this
page and fails if a command says something else. Warnings end with 0 unless \`doctor --fail-on warning\` is given. AGE and TIME
stand for times. The next step of each code is in [codes.md](codes.md), and behind each line of \`status\`.

| fault | \`portolan status\`, exit code | \`portolan doctor\`, exit code | conditions |
| --- | --- | --- | --- |
`;

export interface SilenceRow {
  readonly what: string;
  /** From the fault to the start of the first command that tells it. */
  readonly statusSeconds: number;
  /** To the condition that does; undefined where there is none. */
  readonly conditionSeconds: number | undefined;
}

const silenceHead = `
## How soon silence is told

A part that is frozen keeps its connections and answers nothing. Measured in the same simulation, with the default times of a
clusterset and up to 50 clusters ([more take longer](decisions/0122-silence-is-shown-before-it-counts.md)), looking every
second.

| silent | \`portolan status\` tells after | conditions tell after |
| --- | --- | --- |
`;

export function faultTable(rows: readonly FaultRow[], silences: readonly SilenceRow[]): string {
  return head + rows.map(rowText).join('') + silenceHead + silences.map(silenceText).join('');
}

/** Seconds by which a run may differ from the page: every change of the program shifts the random delays. */
const sameSeconds = 4;

/** The times of the page where a run measures about the same. */
export function steadied(rows: readonly SilenceRow[], page: string): SilenceRow[] {
  return rows.map((row) => {
    const written = new RegExp(`^\\| ${row.what} \\| (\\d+) s \\| (?:(\\d+) s|-) \\|$`, 'm').exec(page);
    const steady = (measured: number, text: string | undefined) =>
      Math.abs(measured - Number(text ?? Number.NaN)) <= sameSeconds ? Number(text) : measured;
    return {
      ...row,
      statusSeconds: steady(row.statusSeconds, written?.[1]),
      conditionSeconds: row.conditionSeconds && steady(row.conditionSeconds, written?.[2]),
    };
  });
}

function silenceText({ what, statusSeconds, conditionSeconds }: SilenceRow): string {
  return `| ${what} | ${statusSeconds} s | ${conditionSeconds === undefined ? '-' : `${conditionSeconds} s`} |\n`;
}

function rowText({ fault, status, doctor, conditions }: FaultRow): string {
  const told = `[${doctor.code}](codes.md#${doctor.code.toLowerCase()}) ${doctor.severity}, ${doctor.exitCode}`;
  return `| ${fault} | ${maskTimes(status.line)}, ${status.exitCode} | ${told} | ${conditions || '-'} |\n`;
}

/** So that the page is the same after each run. */
function maskTimes(line: string): string {
  return line
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/SHA256:[\w-]+/g, 'SHA256:KEY')
    .replace(/\b(\d+[dhms])+\b/g, 'AGE')
    .replaceAll('|', '\\|');
}
