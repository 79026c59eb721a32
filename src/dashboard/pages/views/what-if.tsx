// What if: an export that is added or taken back, planned by the rules of the agents and not done.

import { type FormEvent, useState } from 'react';
import { useSearch } from 'wouter';
import type { ConditionView, PlanView } from '../../wire/views.ts';
import { useAnswer, useRows } from '../data/hooks.ts';
import { Conditions } from '../parts/conditions.tsx';
import { ConflictList } from '../parts/conflict-list.tsx';
import { clockTime } from '../parts/format.ts';
import { HealthBadge } from '../parts/health.tsx';

interface Plan {
  readonly cluster: string;
  readonly key: string;
  readonly change: string;
  readonly at: number;
}

export function WhatIfView() {
  const homes = useRows('homes').filter(({ role, state }) => role !== 'broker' && state !== 'signed out');
  const clusters = homes.map(({ cluster, name }) => cluster || name);
  const search = new URLSearchParams(useSearch());
  const [key, setKey] = useState(search.get('service') ?? '');
  const [cluster, setCluster] = useState('');
  const [change, setChange] = useState('export');
  const [plan, setPlan] = useState<Plan>();
  const where = cluster || clusters[0] || '';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (key.trim() !== '') setPlan({ cluster: where, key: key.trim(), change, at: Date.now() });
  };
  return (
    <>
      <h1>What if</h1>
      <form className="filters" onSubmit={submit}>
        <label>
          Cluster
          <select value={where} onChange={(event) => setCluster(event.target.value)}>
            {clusters.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          Change
          <select value={change} onChange={(event) => setChange(event.target.value)}>
            <option value="export">exported</option>
            <option value="unexport">no longer exported</option>
          </select>
        </label>
        <label>
          Service
          <input
            className="mono"
            placeholder="shop/checkout"
            spellCheck={false}
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        <button type="submit" className="main">
          Plan
        </button>
      </form>
      {plan === undefined ? (
        <p className="nothing">The plan follows the rules of the agents on what is there now. Nothing is changed.</p>
      ) : (
        <Result key={plan.at} plan={plan} />
      )}
    </>
  );
}

function Result({ plan: { cluster, key, change, at } }: { readonly plan: Plan }) {
  const answer = useAnswer<PlanView>('/api/what-if', { cluster, key, change }, at);
  if (answer.kind === 'asking') return <p className="nothing">Planning</p>;
  if (answer.kind === 'failed')
    return (
      <p className="banner banner-failed" role="alert">
        {answer.why}
      </p>
    );
  const view = answer.value;
  const verb = change === 'export' ? 'exported' : 'no longer exported';
  return (
    <section aria-label="Plan">
      <div className="card">
        <h2>
          If {key} were {verb} in {cluster}{' '}
          <span className="small">planned {clockTime(answer.atMs)}, nothing was changed</span>
        </h2>
        {view.flip !== undefined && (
          <p className="banner banner-failed">
            The type would change from {view.flip.from} to {view.flip.to} in every cluster.
          </p>
        )}
        <h3>The import in {cluster}</h3>
        {view.changes.length === 0 ? (
          <p>Would stay as it is{view.clusters.length > 0 ? `, from ${view.clusters.join(', ')}` : ''}.</p>
        ) : (
          <ul>
            {view.changes.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        )}
        <p className="small">It would come from {view.clusters.join(', ') || 'no cluster'}.</p>
        <h3>The export in {cluster} would say</h3>
        {view.conditions === undefined ? <p>There would be none.</p> : <Conditions conditions={view.conditions} />}
        <h3>Exports of other clusters</h3>
        {view.elsewhere.length === 0 ? (
          <p>Nothing would change for them.</p>
        ) : (
          <ul>
            {view.elsewhere.map((other) => (
              <li key={other.cluster}>
                <strong>{other.cluster}</strong>:{' '}
                {differences(other.before, other.after).map((text) => (
                  <span key={text}>{text} </span>
                ))}
              </li>
            ))}
          </ul>
        )}
      </div>
      <h2 className="section">
        <HealthBadge
          health={view.conflicts.length === 0 ? 'ok' : 'conflict'}
          text={view.conflicts.length === 0 ? 'No conflicts afterwards' : 'Conflicts afterwards'}
        />
      </h2>
      <ConflictList conflicts={view.conflicts} />
    </section>
  );
}

function differences(before: readonly ConditionView[], after: readonly ConditionView[]): string[] {
  return after.flatMap((next) => {
    const was = before.find(({ type }) => type === next.type);
    if (was?.status === next.status && was.reason === next.reason) return [];
    return [
      `${next.type} ${was?.status ?? 'absent'} (${was?.reason ?? ''}) would become ${next.status} (${next.reason}).`,
    ];
  });
}
