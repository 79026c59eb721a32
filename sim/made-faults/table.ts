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

export function faultTable(rows: readonly FaultRow[]): string {
  return head + rows.map(rowText).join('');
}

function rowText({ fault, status, doctor, conditions }: FaultRow): string {
  const told = `[${doctor.code}](codes.md#${doctor.code.toLowerCase()}) ${doctor.severity}, ${doctor.exitCode}`;
  return `| ${fault} | ${maskTimes(status.line)}, ${status.exitCode} | ${told} | ${conditions || '-'} |\n`;
}

/** So that the page is the same after each run. */
function maskTimes(line: string): string {
  return line
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\b(\d+[dhms])+\b/g, 'AGE')
    .replaceAll('|', '\\|');
}
