// Services by clusters: where do they differ? Differing rows first; only the cells in sight are in the document, and arrow
// keys move between them.

import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import type { ExporterCell, ServiceRow } from '../../wire/rows.ts';
import { useRows } from '../data/hooks.ts';
import { count } from '../parts/format.ts';
import { Mark } from '../parts/health.tsx';
import { Nothing } from '../parts/states.tsx';

const order = ['failed', 'conflict', 'limited', 'stale', 'unknown', 'ok'];
const rowHeight = 40;
const columnWidth = 92;

export function MatrixView() {
  const services = useRows('services');
  const clusters = useRows('clusters').map(({ id }) => id);
  const rows = useMemo(
    () => [...services].sort((a, b) => order.indexOf(a.health) - order.indexOf(b.health) || (a.key < b.key ? -1 : 1)),
    [services],
  );
  const differing = rows.filter(({ conflicts }) => conflicts.length > 0).length;
  return (
    <>
      <h1>Matrix</h1>
      <p className="lead small">
        {count(rows.length, 'service')} by {count(clusters.length, 'cluster')}, {differing} with conflicts, those first.
        A cell shows how the export of that cluster stands and how many endpoints are ready; a dot means that it exports
        nothing.
      </p>
      {rows.length === 0 ? (
        <Nothing kinds={['serviceexports']} none="No cluster exports a service yet." />
      ) : (
        <Grid rows={rows} clusters={clusters} />
      )}
    </>
  );
}

function Grid({ rows, clusters }: { readonly rows: readonly ServiceRow[]; readonly clusters: readonly string[] }) {
  const box = useRef<HTMLElement>(null);
  const [active, setActive] = useState({ row: 0, column: 0 });
  const down = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 10,
  });
  const across = useVirtualizer({
    count: clusters.length,
    horizontal: true,
    getScrollElement: () => box.current,
    estimateSize: () => columnWidth,
    overscan: 6,
  });
  const items = down.getVirtualItems();
  const columns = across.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = down.getTotalSize() - (items.at(-1)?.end ?? 0);
  const left = columns[0]?.start ?? 0;
  const right = across.getTotalSize() - (columns.at(-1)?.end ?? 0);
  const move = (event: KeyboardEvent) => {
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const row = Math.min(rows.length - 1, Math.max(0, active.row + step[0]));
    const next = { row, column: Math.min(clusters.length - 1, Math.max(0, active.column + step[1])) };
    setActive(next);
    down.scrollToIndex(next.row);
    across.scrollToIndex(next.column);
    requestAnimationFrame(() =>
      box.current?.querySelector<HTMLElement>(`[data-cell="${next.row} ${next.column}"]`)?.focus(),
    );
  };
  return (
    <section className="table-box" ref={box} aria-label="Matrix of services and clusters" onKeyDown={move}>
      <table className="matrix" aria-rowcount={rows.length + 1} aria-colcount={clusters.length + 1}>
        <thead>
          <tr>
            <th scope="col" className="matrix-name">
              Service
            </th>
            <Gap width={left} />
            {columns.map(({ index }) => (
              <th key={clusters[index]} scope="col" aria-colindex={index + 2} title={clusters[index]}>
                <span className="clip">{clusters[index]}</span>
              </th>
            ))}
            <Gap width={right} />
          </tr>
        </thead>
        <tbody>
          <GapRow height={above} />
          {items.map(({ index: r }) => {
            const row = rows[r];
            if (row === undefined) return null;
            return (
              <tr key={row.key} aria-rowindex={r + 2}>
                <th scope="row" className="matrix-name">
                  <Mark health={row.health} /> <Link href={`/services/${row.key}`}>{row.key}</Link>
                </th>
                {left > 0 ? <td /> : null}
                {columns.map(({ index: c }) => (
                  <Cell
                    key={clusters[c]}
                    at={{ row: r, column: c }}
                    isActive={active.row === r && active.column === c}
                    service={row}
                    cell={row.exporters.find(({ cluster }) => cluster === clusters[c])}
                    cluster={clusters[c] ?? ''}
                  />
                ))}
                {right > 0 ? <td /> : null}
              </tr>
            );
          })}
          <GapRow height={below} />
        </tbody>
      </table>
    </section>
  );
}

/** In place of the columns that are scrolled out of sight. */
function Gap({ width }: { readonly width: number }) {
  return width > 0 ? <td style={{ width, minWidth: width }} /> : null;
}

/** The same for rows. */
function GapRow({ height }: { readonly height: number }) {
  if (height <= 0) return null;
  return (
    <tr className="gap">
      <td style={{ height }} />
    </tr>
  );
}

const steps: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
};

interface CellProps {
  readonly at: { readonly row: number; readonly column: number };
  readonly isActive: boolean;
  readonly service: ServiceRow;
  readonly cell: ExporterCell | undefined;
  readonly cluster: string;
}

function Cell({ at, isActive, service, cell, cluster }: CellProps) {
  const says =
    cell === undefined
      ? 'exports nothing'
      : `${cell.health}${cell.differs.length > 0 ? `, differs in ${cell.differs.join(', ')}` : ''}, ${cell.ready ?? 'unknown'} ready`;
  return (
    <td className="matrix-cell">
      <Link
        href={`/services/${service.key}`}
        tabIndex={isActive ? 0 : -1}
        data-cell={`${at.row} ${at.column}`}
        aria-label={`${service.key} in ${cluster}: ${says}`}
        title={says}
      >
        {cell === undefined ? '·' : <Mark health={cell.health} />} {cell?.ready ?? ''}
      </Link>
    </td>
  );
}
