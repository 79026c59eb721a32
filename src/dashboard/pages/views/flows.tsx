// The last connections as node proxies recorded them, new ones on top, filtered, and of each failed one what is known of the
// reason. A sample: what is missing is said.

import { useEffect, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import type { FlowsView as Answer, FlowRow } from '../../wire/views.ts';
import { useLive, useRows } from '../data/hooks.ts';
import { Age } from '../parts/age.tsx';
import { bytes, elapsed } from '../parts/format.ts';
import { HealthBadge } from '../parts/health.tsx';
import { Scroll } from '../parts/scroll.tsx';

const everyMs = 1_000;
const shownMax = 200;
const outcomes = ['answered', 'refused', 'no-answer', 'denied'];
type Filter = Readonly<Record<'service' | 'from' | 'to' | 'outcome', string>>;

export function FlowsView() {
  const { filter, change } = useFilter();
  const [isPaused, setIsPaused] = useState(false);
  const { flows, losses, missing, why } = useFlows(filter, isPaused);
  const clusters = useRows('clusters').map(({ id }) => id);
  const isFiltered = Object.values(filter).some((one) => one !== '');
  const pick = (name: 'from' | 'to' | 'outcome', label: string, values: readonly string[]) => (
    <label>
      {label}
      <select value={filter[name]} onChange={(event) => change({ [name]: event.target.value })}>
        <option value="">any</option>
        {values.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <h1>Flows</h1>
      <search className="filters">
        <label>
          Service
          <input
            type="search"
            placeholder="shop/checkout"
            value={filter.service}
            onChange={(event) => change({ service: event.target.value })}
          />
        </label>
        {pick('from', 'From cluster', clusters)}
        {pick('to', 'To cluster', clusters)}
        {pick('outcome', 'Outcome', outcomes)}
        <label className="toggle">
          <input type="checkbox" checked={isPaused} onChange={(event) => setIsPaused(event.target.checked)} /> Hold
          still
        </label>
      </search>
      {why === '' ? null : (
        <p className="banner banner-failed" role="alert">
          No new flows: {why}
        </p>
      )}
      {flows.length === 0 ? <NoFlows isFiltered={isFiltered} missing={missing} /> : <Table flows={flows} />}
      <p className="small">
        A sample of single connections; the totals on the overview are exact.
        {losses.length === 0 ? '' : ` Not shown ${losses.join('; ')}.`}
        {missing.map(({ cluster, why: reason }) => ` ${cluster}: ${reason}.`).join('')}
      </p>
    </>
  );
}

function NoFlows({ isFiltered, missing }: { readonly isFiltered: boolean; readonly missing: Answer['missing'] }) {
  return (
    <div className="nothing" role="status">
      <p>
        {isFiltered
          ? 'No connection of the last minutes matches this filter.'
          : 'No connection to a clusterset IP was recorded in the last minutes.'}
      </p>
      {isFiltered || missing.length > 0 ? null : (
        <p>Connect to a service by its name, and it shows here within a second.</p>
      )}
    </div>
  );
}

/** In the address: a link shows somebody else the same. */
function useFilter(): { readonly filter: Filter; readonly change: (next: Partial<Filter>) => void } {
  const [path, navigate] = useLocation();
  const search = new URLSearchParams(useSearch());
  const at = (name: string) => search.get(name) ?? '';
  const filter: Filter = { service: at('service'), from: at('from'), to: at('to'), outcome: at('outcome') };
  const change = (next: Partial<Filter>) => {
    const set = Object.entries({ ...filter, ...next }).filter(([, value]) => value !== '');
    navigate(set.length === 0 ? path : `${path}?${new URLSearchParams(set)}`, { replace: true });
  };
  return { filter, change };
}

const nothing: Answer = { flows: [], next: 0, losses: [], missing: [] };

/** Asks for what is new once a second while the page is shown. */
function useFlows(filter: Filter, isPaused: boolean): Omit<Answer, 'next'> & { readonly why: string } {
  const live = useLive();
  const [answer, setAnswer] = useState(nothing);
  const [why, setWhy] = useState('');
  const question = JSON.stringify(filter);
  useEffect(() => setAnswer(question === '' ? nothing : { ...nothing }), [question]);
  useEffect(() => {
    if (isPaused) return;
    const gone = new AbortController();
    let after: number | undefined;
    let isAsking = false;
    const read = async () => {
      if (isAsking || document.hidden) return;
      isAsking = true;
      try {
        const query = { ...(JSON.parse(question) as Filter), ...(after === undefined ? {} : { after: String(after) }) };
        const next = await live.ask<Answer>('/api/flows', query, { signal: gone.signal });
        const isFirst = after === undefined;
        after = next.next;
        setAnswer((before) => ({ ...next, flows: isFirst ? next.flows : merged(next.flows, before.flows) }));
        setWhy('');
      } catch (error) {
        if (!gone.signal.aborted) setWhy(error instanceof Error ? error.message : String(error));
      } finally {
        isAsking = false;
      }
    };
    void read();
    const timer = setInterval(() => void read(), everyMs);
    return () => {
      clearInterval(timer);
      gone.abort();
    };
  }, [live, question, isPaused]);
  return { ...answer, flows: merged([], answer.flows), why };
}

/** The latest row of each connection. */
function merged(newer: readonly FlowRow[], older: readonly FlowRow[]): FlowRow[] {
  const byId = new Map<string, FlowRow>();
  for (const flow of [...newer, ...older]) if (!byId.has(flow.id)) byId.set(flow.id, flow);
  return [...byId.values()].sort((a, b) => (b.atMs ?? 0) - (a.atMs ?? 0)).slice(0, shownMax);
}

function Table({ flows }: { readonly flows: readonly FlowRow[] }) {
  return (
    <Scroll label="Flows, scrolls">
      <table className="flows">
        <thead>
          <tr>
            {['Time', 'From', 'Service', 'To', 'Outcome', 'Answer', 'Lasted', 'Sent', 'Received'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {flows.map((flow) => (
            <Row key={flow.id} flow={flow} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Row({ flow }: { readonly flow: FlowRow }) {
  const { atMs, from, node, client, service, to, endpoint, way, outcome, reasons } = flow;
  const key = service.replace(/:\d+\/\w+$/, '');
  return (
    <tr>
      <td>{atMs === undefined ? '–' : <Age atMs={atMs} />}</td>
      <td>
        {from}{' '}
        <span className="small">
          {node}
          {flow.isOfEnvoy ? ', Envoy' : ''}
        </span>
        {flow.clientPod === '' ? null : <div>{flow.clientPod}</div>}
        <div className="mono">{client}</div>
      </td>
      <td>
        <Link href={`/services/${key}`}>{service}</Link>
      </td>
      <td>
        {to || '?'}
        {way === 'gateway' ? ' through a gateway' : ''}
        <div className="mono">{endpoint}</div>
      </td>
      <td>
        <HealthBadge
          health={outcome === 'answered' ? 'ok' : 'failed'}
          text={flow.status === undefined ? outcome : `${outcome}, ${flow.status}`}
        />
        {reasons.length === 0 ? null : (
          <details>
            <summary>Why?</summary>
            <ul>
              {reasons.map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </details>
        )}
      </td>
      <td>{flow.answeredAfterMs === undefined ? '–' : `${flow.answeredAfterMs.toFixed(1)} ms`}</td>
      <td>{flow.lastedMs === undefined ? (flow.isOpen ? 'open' : '–') : elapsed(flow.lastedMs)}</td>
      <td>{flow.sentBytes === undefined ? '–' : bytes(flow.sentBytes)}</td>
      <td>{flow.receivedBytes === undefined ? '–' : bytes(flow.receivedBytes)}</td>
    </tr>
  );
}
