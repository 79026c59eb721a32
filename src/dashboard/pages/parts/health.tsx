// How something stands: a shape, a colour and a word, so that nobody has to tell colours apart.

import type { Health, ProblemRow } from '../../wire/rows.ts';

type Severity = ProblemRow['severity'];

const words: Readonly<Record<Health, string>> = {
  ok: 'OK',
  conflict: 'Conflict',
  limited: 'Limited',
  failed: 'Failed',
  stale: 'Stale',
  unknown: 'Unknown',
};

export function Mark({ health }: { readonly health: Health }) {
  return (
    <svg className={`mark mark-${health}`} viewBox="0 0 16 16" aria-hidden="true">
      {shapes[health]}
    </svg>
  );
}

const shapes: Readonly<Record<Health, React.ReactNode>> = {
  ok: <circle cx="8" cy="8" r="5.5" />,
  conflict: <path d="M8 2l6.5 11.5h-13z" />,
  limited: <path d="M8 2.5a5.5 5.5 0 010 11z M8 2.5a5.5 5.5 0 000 11" fill="none" strokeWidth="2" />,
  failed: <rect x="2.5" y="2.5" width="11" height="11" />,
  stale: <circle cx="8" cy="8" r="5" fill="none" strokeDasharray="3 2.2" strokeWidth="2" />,
  unknown: <path d="M5.2 6a2.8 2.8 0 115.2 1.4c-.8 1-2.2 1.3-2.2 2.8M8.2 13.2v.2" fill="none" strokeWidth="2" />,
};

export function HealthBadge({ health, text }: { readonly health: Health; readonly text?: string }) {
  return (
    <span className={`badge badge-${health}`}>
      <Mark health={health} />
      {text ?? words[health]}
    </span>
  );
}

const bySeverity: Readonly<Record<Severity, Health>> = { error: 'failed', warning: 'conflict', info: 'unknown' };

export function SeverityBadge({ severity }: { readonly severity: Severity }) {
  return <HealthBadge health={bySeverity[severity]} text={severity} />;
}
