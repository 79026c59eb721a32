// The answer to a name with the reason behind each record, and what was left out.

import type { NameStep } from '../../wire/views.ts';
import { elapsed } from './format.ts';
import { HealthBadge } from './health.tsx';

export function NameSteps({ steps }: { readonly steps: readonly NameStep[] }) {
  return (
    <>
      {steps.map((step) => (
        <section key={step.server} className="step" aria-label={step.server}>
          <p>
            <HealthBadge health={step.rcode === 'NOERROR' ? 'ok' : 'failed'} text={step.rcode} /> from the {step.server}
            , by its {step.handler} handler
            {step.extendedError ? `: ${step.extendedError}` : ''}
          </p>
          {step.records.length === 0 ? <p className="small">No records.</p> : <Records step={step} />}
          {step.leftOut.length > 0 && (
            <details>
              <summary>Left out: {step.leftOut.length}</summary>
              <ul>
                {step.leftOut.map(({ what, why }) => (
                  <li key={what}>
                    <code>{what}</code>: {why}
                  </li>
                ))}
              </ul>
            </details>
          )}
        </section>
      ))}
    </>
  );
}

function Records({ step }: { readonly step: NameStep }) {
  return (
    <ul className="records">
      {step.records.map((record) => (
        <li key={`${record.owner} ${record.text}`}>
          <code>
            {record.owner === undefined ? '' : `${record.owner} `}
            {record.text}
          </code>
          <span className="small">
            {' '}
            TTL {record.ttlSeconds} s{record.near ? `, ${record.near}` : ''}
          </span>
          <ul>
            {record.sources.map(({ kind, name, cluster, peer, state, ageMs }) => (
              <li key={`${kind} ${name} ${cluster}`} className="small">
                because of {kind} <code>{name}</code>
                {cluster ? `, cluster ${cluster}` : ''}
                {peer ? `, peer ${peer}` : ''}
                {state ? `, ${state}` : ''}
                {ageMs === undefined ? '' : `, ${elapsed(ageMs)} old`}
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}
