// Who lives, who lags, which version: one row for each cluster with its lease and its parts.

import type { ClusterRow } from '../../wire/rows.ts';
import { useNowMs, useRows } from '../data/hooks.ts';
import { Age } from '../parts/age.tsx';
import { DemoButtons } from '../parts/demo-buttons.tsx';
import { elapsed } from '../parts/format.ts';
import { HealthBadge, Mark } from '../parts/health.tsx';
import { Scroll } from '../parts/scroll.tsx';
import { Nothing } from '../parts/states.tsx';

export function ClustersView() {
  const rows = useRows('clusters');
  const nowMs = useNowMs();
  return (
    <>
      <h1>Clusters</h1>
      {rows.length === 0 ? (
        <Nothing kinds={['clusters', 'clusterproperties']} none="No cluster has joined." />
      ) : (
        <Scroll label="Clusters, scrolls">
          <table>
            <thead>
              <tr>
                <th scope="col">Cluster</th>
                <th scope="col">State</th>
                <th scope="col">Region, zone</th>
                <th scope="col">Lease renewed</th>
                <th scope="col" className="number">
                  Exports
                </th>
                <th scope="col" className="number">
                  Imports
                </th>
                <th scope="col">Parts</th>
                <th scope="col">Version</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={row.id} row={row} nowMs={nowMs} />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
}

function Row({ row, nowMs }: { readonly row: ClusterRow; readonly nowMs: number }) {
  return (
    <tr>
      <th scope="row">
        {row.id}
        <DemoButtons cluster={row.id} />
      </th>
      <td>
        <HealthBadge health={row.health} />
        <div className="small">
          {row.says}
          {row.isDraining ? ', draining' : ''}
        </div>
      </td>
      <td>
        {row.region || '–'}
        {row.zone ? `, ${row.zone}` : ''}
      </td>
      <td>{row.renewedMs === undefined ? '–' : <Age atMs={row.renewedMs} />}</td>
      <td className="number">{row.services}</td>
      <td className="number">{row.imports ?? '?'}</td>
      <td>
        <ul className="part-list">
          {row.parts.map(({ part, node, state, reportedMs }) => (
            <li key={`${part} ${node}`} title={reportedMs === undefined ? '' : `${elapsed(nowMs - reportedMs)} ago`}>
              <Mark health={state === 'reporting' ? 'ok' : 'failed'} /> {part} <span className="small">{node}</span>
              {state === 'silent' ? <span className="small"> silent</span> : null}
            </li>
          ))}
        </ul>
        {row.parts.length === 0 ? '?' : null}
      </td>
      <td>{row.versions.join(', ') || '?'}</td>
    </tr>
  );
}
