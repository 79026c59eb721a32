// External services: which addresses they have, where connections go, and what overlaps.

import { useRows } from '../data/hooks.ts';
import { HealthBadge } from '../parts/health.tsx';
import { Scroll } from '../parts/scroll.tsx';
import { Nothing } from '../parts/states.tsx';

export function ExternalView() {
  const rows = useRows('external');
  return (
    <>
      <h1>External services</h1>
      {rows.length === 0 ? (
        <Nothing kinds={['meshexternalservices']} none="No external service is described here (MeshExternalService)." />
      ) : (
        <Scroll label="External services, scrolls">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Cluster</th>
                <th scope="col">State</th>
                <th scope="col">Matches</th>
                <th scope="col">Goes to</th>
                <th scope="col">Addresses</th>
                <th scope="col">Overlaps</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <th scope="row">{row.name}</th>
                  <td>{row.cluster}</td>
                  <td>
                    <HealthBadge health={row.health} />
                    <div className="small">{row.says}</div>
                  </td>
                  <td>
                    {row.matches.map((text) => (
                      <div key={text}>{text}</div>
                    ))}
                  </td>
                  <td>{row.destination}</td>
                  <td>
                    {row.vips.map(({ ip, hostname }) => (
                      <div key={`${ip} ${hostname}`}>
                        <code>{ip}</code> {hostname}
                      </div>
                    ))}
                    {row.unavailable.map(({ hostname, reason }) => (
                      <div key={hostname} className="small">
                        {hostname} is not available: {reason}
                      </div>
                    ))}
                  </td>
                  <td>
                    {row.overlaps.length === 0 ? 'none' : row.overlaps.map((text) => <div key={text}>{text}</div>)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
}
