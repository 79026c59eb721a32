// Ask a name: what a cluster's resolver answers, from which object each record is, and what was left out.

import { type FormEvent, useState } from 'react';
import type { NameView } from '../../wire/views.ts';
import { useAnswer, useRows } from '../data/hooks.ts';
import { clockTime } from '../parts/format.ts';
import { NameSteps } from '../parts/name-steps.tsx';

const types = ['A', 'AAAA', 'SRV', 'PTR', 'TXT', 'CNAME', 'HTTPS'];

export function AskView() {
  const homes = useRows('homes').filter(({ role, state }) => role !== 'broker' && state !== 'signed out');
  const services = useRows('services');
  const clusters = homes.map(({ cluster, name }) => cluster || name);
  const [name, setName] = useState(() => new URLSearchParams(location.search).get('name') ?? '');
  const [type, setType] = useState('A');
  const [cluster, setCluster] = useState('');
  const [asked, setAsked] = useState<{ name: string; type: string; cluster: string; at: number }>();
  const from = cluster || clusters[0] || '';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() !== '') setAsked({ name: name.trim(), type, cluster: from, at: Date.now() });
  };
  return (
    <>
      <h1>Ask a name</h1>
      <form className="filters" onSubmit={submit}>
        <label>
          Name
          <input
            className="wide mono"
            list="names"
            spellCheck={false}
            autoComplete="off"
            placeholder="checkout.shop.svc.clusterset.local"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <datalist id="names">
          {services.slice(0, 200).map(({ key }) => (
            <option key={key} value={nameOf(key)} />
          ))}
        </datalist>
        <label>
          Type
          <select value={type} onChange={(event) => setType(event.target.value)}>
            {types.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          From cluster
          <select value={from} onChange={(event) => setCluster(event.target.value)}>
            {clusters.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <button type="submit" className="main">
          Ask
        </button>
      </form>
      {asked === undefined ? (
        <p className="nothing">
          The resolver of the cluster explains its answer: which object is behind each record, how old it is, and what
          was left out.
        </p>
      ) : (
        <Result key={asked.at} {...asked} />
      )}
    </>
  );
}

function nameOf(key: string): string {
  const [namespace, name] = key.split('/');
  return `${name}.${namespace}.svc.clusterset.local`;
}

function Result({ name, type, cluster, at }: { name: string; type: string; cluster: string; at: number }) {
  const answer = useAnswer<NameView>('/api/ask', { name, type, cluster }, at);
  if (answer.kind === 'asking') return <p className="nothing">Asking the resolver of {cluster}</p>;
  if (answer.kind === 'failed')
    return (
      <p className="banner banner-failed" role="alert">
        {answer.why}
      </p>
    );
  return (
    <section className="card" aria-label="Answer">
      <h2>
        <code>
          {name} {type}
        </code>{' '}
        from {cluster} <span className="small">as of {clockTime(answer.atMs)}</span>
      </h2>
      <NameSteps steps={answer.value.steps} />
    </section>
  );
}
