// The map: clusters by region, peers and external services, and who exports to whom. Positions are fixed, so that nothing
// jumps; a list beside it says the same in words.

import {
  Background,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
  type XYPosition,
} from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import '../styles/map.css';
import { useMemo, useState } from 'react';
import type { ClusterRow, ExternalRow, PeerRow, ReachRow, Standing } from '../../wire/rows.ts';
import { useRows } from '../data/hooks.ts';
import { DemoButtons } from '../parts/demo-buttons.tsx';
import { count } from '../parts/format.ts';
import { Mark, StandingBadge } from '../parts/standing.tsx';
import { Nothing } from '../parts/states.tsx';

type Place = Node<{ name: string; says: string; standing: Standing; what: string }>;

const column = 250;
const line = 128;
/** With more clusters only the edges of the chosen one are drawn. */
const allEdgesMax = 12;

export function MapView() {
  const clusters = useRows('clusters');
  const peers = useRows('peers');
  const external = useRows('external');
  const [chosen, setChosen] = useState('');
  const nodes = useMemo(() => placesOf(clusters, peers, external), [clusters, peers, external]);
  const edges = useMemo(
    () => edgesOf({ clusters, peers, external, chosen, nodes }),
    [clusters, peers, external, chosen, nodes],
  );
  const row = clusters.find(({ id }) => `cluster ${id}` === chosen);
  if (clusters.length === 0)
    return (
      <>
        <h1>Map</h1>
        <Nothing kinds={['clusters', 'clusterproperties']} none="No cluster has joined." />
      </>
    );
  return (
    <>
      <h1>Map</h1>
      <div className="map-frame">
        <div className="map">
          <ReactFlow
            nodes={nodes.map((node) => ({ ...node, selected: node.id === chosen }))}
            edges={edges}
            nodeTypes={nodeTypes}
            nodesDraggable={false}
            nodesConnectable={false}
            edgesFocusable={false}
            onNodeClick={(_event, node) => setChosen(node.id === chosen ? '' : node.id)}
            onSelectionChange={({ nodes: selected }) => selected[0] && setChosen(selected[0].id)}
            fitView
            minZoom={0.2}
            maxZoom={1.5}
          >
            <Background />
            <Controls showInteractive={false} />
          </ReactFlow>
        </div>
        <aside className="card map-side" aria-label="Chosen cluster">
          {row === undefined ? (
            <Everyone clusters={clusters} choose={setChosen} />
          ) : (
            <Chosen row={row} close={() => setChosen('')} />
          )}
        </aside>
      </div>
    </>
  );
}

function Everyone({
  clusters,
  choose,
}: {
  readonly clusters: readonly ClusterRow[];
  readonly choose: (id: string) => void;
}) {
  return (
    <>
      <h2>{count(clusters.length, 'cluster')}</h2>
      <ul className="part-list">
        {clusters.map(({ id, standing, says }) => (
          <li key={id}>
            <button type="button" className="quiet" onClick={() => choose(`cluster ${id}`)}>
              <Mark standing={standing} /> {id} <span className="small">{says}</span>
            </button>
            <DemoButtons cluster={id} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Chosen({ row, close }: { readonly row: ClusterRow; readonly close: () => void }) {
  const into = useRows('clusters').filter(({ exportsTo }) => exportsTo.includes(row.id));
  return (
    <>
      <h2>{row.id}</h2>
      <p>
        <StandingBadge standing={row.standing} /> <span className="small">{row.says}</span>
      </p>
      <dl className="facts facts-column">
        <div>
          <dt>Region, zone</dt>
          <dd>
            {row.region || '–'} {row.zone}
          </dd>
        </div>
        <div>
          <dt>Exports to</dt>
          <dd>{row.exportsTo.join(', ') || 'nobody'}</dd>
        </div>
        <div>
          <dt>Imports from</dt>
          <dd>{into.map(({ id }) => id).join(', ') || 'nobody'}</dd>
        </div>
        {row.reaches === undefined ? null : (
          <div>
            <dt>Reaches</dt>
            <dd>
              <ul className="part-list">
                {row.reaches.map(({ cluster, text, isWell }) => (
                  <li key={cluster}>
                    <Mark standing={isWell ? 'ok' : 'failed'} /> {cluster} <span className="small">{text}</span>
                  </li>
                ))}
              </ul>
            </dd>
          </div>
        )}
        <div>
          <dt>Exports</dt>
          <dd>
            {count(row.services, 'service')}, {count(row.ready, 'ready endpoint')}
          </dd>
        </div>
      </dl>
      <DemoButtons cluster={row.id} />
      <button type="button" className="quiet" onClick={close}>
        Show all
      </button>
    </>
  );
}

const nodeTypes = { place: PlaceNode, region: RegionNode };

function PlaceNode({ data, selected }: NodeProps<Place>) {
  return (
    <div className={`place place-${data.standing} ${selected ? 'is-chosen' : ''}`}>
      <Handles />
      <Mark standing={data.standing} />
      <span className="tile-name">{data.name}</span>
      <span className="small">{data.what}</span>
      <span className="small clip">{data.says}</span>
    </div>
  );
}

function Handles() {
  return [Position.Left, Position.Right, Position.Top, Position.Bottom].flatMap((side) =>
    (['source', 'target'] as const).map((type) => (
      <Handle key={`${side} ${type}`} id={side} type={type} position={side} isConnectable={false} />
    )),
  );
}

function RegionNode({ data }: NodeProps<Place>) {
  return <div className="map-region">{data.name}</div>;
}

function placesOf(
  clusters: readonly ClusterRow[],
  peers: readonly PeerRow[],
  external: readonly ExternalRow[],
): Place[] {
  const regions = [...Map.groupBy(clusters, ({ region }) => region || 'no region')].sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  const places: Place[] = [];
  for (const [x, [region, rows]] of regions.entries()) {
    places.push(header(region, x));
    for (const [y, row] of rows.entries())
      places.push(
        place(`cluster ${row.id}`, { x, y }, { name: row.id, says: row.says, standing: row.standing, what: 'cluster' }),
      );
  }
  const outside = [
    ...peers.map((row) => ({
      id: `peer ${row.id}`,
      name: row.name,
      standing: row.standing,
      says: row.taking?.state ?? '',
      what: `peer of ${row.cluster}`,
    })),
    ...external.map((row) => ({
      id: `external ${row.id}`,
      name: row.name,
      standing: row.standing,
      says: row.says,
      what: `external, ${row.cluster}`,
    })),
  ];
  if (outside.length > 0) places.push(header('outside', regions.length));
  for (const [y, { id, ...data }] of outside.slice(0, 50).entries())
    places.push(place(id, { x: regions.length, y }, data));
  return places;
}

function header(name: string, x: number): Place {
  const data = { name, says: '', standing: 'ok' as const, what: '' };
  return {
    id: `region ${name}`,
    type: 'region',
    position: { x: x * column, y: -54 },
    data,
    focusable: false,
    selectable: false,
  };
}

function place(id: string, at: { readonly x: number; readonly y: number }, data: Place['data']): Place {
  const ariaLabel = `${data.what} ${data.name}: ${data.standing}, ${data.says}`;
  return { id, type: 'place', position: { x: at.x * column, y: at.y * line }, data, ariaLabel, ariaRole: 'button' };
}

interface EdgeInput {
  readonly clusters: readonly ClusterRow[];
  readonly peers: readonly PeerRow[];
  readonly external: readonly ExternalRow[];
  readonly chosen: string;
  readonly nodes: readonly Place[];
}

function edgesOf({ clusters, peers, external, chosen, nodes }: EdgeInput): Edge[] {
  const at = new Map(nodes.map(({ id, position }) => [id, position]));
  const isFew = clusters.length <= allEdgesMax;
  const edges: Edge[] = [];
  const add = (source: string, target: string, more: Partial<Edge>) =>
    edges.push({
      id: `${source} ${target}`,
      source,
      target,
      type: 'straight',
      focusable: false,
      ...sides(at.get(source), at.get(target)),
      ...more,
    });
  const byId = new Map(clusters.map((row) => [row.id, row]));
  for (const { id, exportsTo, standing } of clusters)
    for (const target of exportsTo) {
      const isMutual = byId.get(target)?.exportsTo.includes(id) === true;
      // One line for both directions.
      if (isMutual && target < id) continue;
      const isChosen = chosen === `cluster ${id}` || chosen === `cluster ${target}`;
      if (!isChosen && (!isFew || chosen !== '')) continue;
      // The importing cluster connects, so its way counts.
      const ways = [reachOf(byId.get(target), id), ...(isMutual ? [reachOf(byId.get(id), target)] : [])];
      const worst = isMutual && standing === 'ok' ? (byId.get(target)?.standing ?? standing) : standing;
      add(`cluster ${id}`, `cluster ${target}`, {
        className: `edge-${worst} ${isChosen ? 'edge-chosen' : ''} ${wayClass(ways)}`,
        markerEnd: arrow,
        ...(isMutual ? { markerStart: { ...arrow, orient: 'auto-start-reverse' } } : {}),
      });
    }
  for (const [what, rows] of [
    ['peer', peers],
    ['external', external],
  ] as const)
    for (const { id, cluster, standing } of rows)
      add(`cluster ${cluster}`, `${what} ${id}`, { className: `edge-${standing} edge-outside` });
  return edges;
}

function reachOf(from: ClusterRow | undefined, to: string): ReachRow | undefined {
  return from?.reaches?.find(({ cluster }) => cluster === to);
}

function wayClass(ways: readonly (ReachRow | undefined)[]): string {
  if (ways.some((one) => one?.way === 'none')) return 'edge-unreached';
  return ways.some((one) => one?.way === 'gateway') ? 'edge-gateway' : '';
}

const arrow = { type: MarkerType.ArrowClosed, width: 12, height: 12, color: '#5b7f99' };

/** Lines leave a place on the side where the other one is. */
function sides(from: XYPosition | undefined, to: XYPosition | undefined) {
  const [dx, dy] = [(to?.x ?? 0) - (from?.x ?? 0), (to?.y ?? 0) - (from?.y ?? 0)];
  if (dx === 0)
    return dy > 0 ? { sourceHandle: 'bottom', targetHandle: 'top' } : { sourceHandle: 'top', targetHandle: 'bottom' };
  return dx > 0 ? { sourceHandle: 'right', targetHandle: 'left' } : { sourceHandle: 'left', targetHandle: 'right' };
}
