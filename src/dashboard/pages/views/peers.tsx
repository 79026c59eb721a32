// Peers: what we take and give, what was refused, how far each side lags, and when services are withdrawn.

import type { PeerRow, PeerSideRow } from '../../wire/rows.ts';
import { useNowMs, useRows } from '../data/hooks.ts';
import { count, elapsed } from '../parts/format.ts';
import { HealthBadge } from '../parts/health.tsx';
import { Nothing } from '../parts/states.tsx';

export function PeersView() {
  const rows = useRows('peers');
  return (
    <>
      <h1>Peers</h1>
      {rows.length === 0 ? (
        <Nothing kinds={['peers']} none="No other mesh is known here: portolan peer add." />
      ) : (
        rows.map((row) => <PeerCard key={row.id} row={row} />)
      )}
    </>
  );
}

function PeerCard({ row }: { readonly row: PeerRow }) {
  return (
    <article className={`card ${row.health === 'stale' ? 'old' : ''}`}>
      <div className="problem-head">
        <HealthBadge health={row.health} />
        <h2>
          {row.name} <span className="small">peer of {row.cluster}</span>
        </h2>
      </div>
      <div className="cards">
        <Side name="We take" side={row.taking} />
        <Side name="We give" side={row.giving} />
      </div>
      <h3>Differences from what it sent</h3>
      {row.differences.length === 0 ? (
        <p className="small">None.</p>
      ) : (
        <ul>
          {row.differences.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      {row.services.length > 0 && (
        <details>
          <summary>{count(row.services.length, 'service')} taken</summary>
          <ul>
            {row.services.map(({ name, hostname, state }) => (
              <li key={`${name} ${hostname}`}>
                {name} <code>{hostname}</code> <span className="small">{state}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </article>
  );
}

function Side({ name, side }: { readonly name: string; readonly side: PeerSideRow | undefined }) {
  const nowMs = useNowMs();
  if (side === undefined)
    return (
      <div>
        <h3>{name}</h3>
        <p className="small">Nothing.</p>
      </div>
    );
  return (
    <div>
      <h3>{name}</h3>
      <dl className="facts facts-column">
        <Fact name="State" value={`${side.state}${side.message ? `: ${side.message}` : ''}`} />
        <Fact name="Services" value={String(side.services)} />
        <Fact name="Lag" value={side.lag === 0 ? 'none' : `${count(side.lag, 'service')}, ${side.lagSeconds} s`} />
        <Fact name="Refused" value={String(side.refused)} />
        <Fact
          name="Last contact"
          value={side.lastContactMs === undefined ? 'never' : `${elapsed(nowMs - side.lastContactMs)} ago`}
        />
        {side.withdrawnInSeconds !== undefined && (
          <Fact name="Withdrawn in" value={elapsed(side.withdrawnInSeconds * 1_000)} />
        )}
      </dl>
      {side.refusals.length > 0 && (
        <ul>
          {side.refusals.map(({ id, reason }) => (
            <li key={id}>
              <code>{id}</code> refused: {reason}
            </li>
          ))}
        </ul>
      )}
      {side.notes.length > 0 && (
        <>
          <h4>Notes of the other side</h4>
          <ul>
            {side.notes.map(({ id, note }) => (
              <li key={id}>
                <code>{id}</code>: {note}
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
