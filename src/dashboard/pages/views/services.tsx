// All services of the clusterset: search first, filters beside it, and only the rows in sight in the document.

import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import type { Health, ServiceRow } from '../../wire/rows.ts';
import { useRows } from '../data/hooks.ts';
import { count } from '../parts/format.ts';
import { HealthBadge } from '../parts/health.tsx';
import { Nothing } from '../parts/states.tsx';

const healths: readonly (Health | 'all')[] = ['all', 'failed', 'conflict', 'limited', 'stale', 'ok', 'unknown'];
const rowHeight = 44;

export function ServicesView() {
  const all = useRows('services');
  const clusters = useRows('clusters');
  const [text, setText] = useState('');
  const [health, setHealth] = useState<Health | 'all'>('all');
  const [cluster, setCluster] = useState(() => new URLSearchParams(location.search).get('cluster') ?? '');
  const rows = useMemo(
    () => all.filter((row) => isWanted(row, { text, health, cluster })),
    [all, text, health, cluster],
  );
  const search = useRef<HTMLInputElement>(null);
  useSlash(search);
  const clear = () => {
    setText('');
    setHealth('all');
    setCluster('');
  };
  const isFiltered = text !== '' || health !== 'all' || cluster !== '';
  return (
    <>
      <h1>Services</h1>
      <search className="filters">
        <label>
          Search
          <input
            ref={search}
            type="search"
            value={text}
            placeholder="namespace, name or address (press /)"
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <label>
          State
          <select value={health} onChange={(event) => setHealth(event.target.value as Health)}>
            {healths.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          Exported by
          <select value={cluster} onChange={(event) => setCluster(event.target.value)}>
            <option value="">any cluster</option>
            {clusters.map(({ id }) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        </label>
        <KeyToggle />
        <span className="total" role="status">
          {isFiltered ? `${rows.length} of ${count(all.length, 'service')}` : count(all.length, 'service')}
        </span>
      </search>
      {rows.length === 0 ? (
        <Nothing
          kinds={['serviceexports', 'serviceimports']}
          none="No cluster exports a service yet: portolan export NAMESPACE/NAME."
          filter={isFiltered ? { total: all.length, clear } : undefined}
        />
      ) : (
        <List rows={rows} />
      )}
    </>
  );
}

interface Filter {
  readonly text: string;
  readonly health: Health | 'all';
  readonly cluster: string;
}

function isWanted(row: ServiceRow, { text, health, cluster }: Filter): boolean {
  if (health !== 'all' && row.health !== health) return false;
  if (cluster !== '' && !row.exporters.some((one) => one.cluster === cluster)) return false;
  const wanted = text.trim().toLowerCase();
  return wanted === '' || row.key.includes(wanted) || row.ips.some((ip) => ip.startsWith(wanted));
}

/** People who dictate, or whose keys repeat, can switch single-key shortcuts off. */
function KeyToggle() {
  const [isOn, setIsOn] = useState(() => localStorage.getItem('portolan-keys') !== 'off');
  const change = (next: boolean) => {
    localStorage.setItem('portolan-keys', next ? 'on' : 'off');
    setIsOn(next);
  };
  return (
    <label className="toggle">
      <input type="checkbox" checked={isOn} onChange={(event) => change(event.target.checked)} /> Key / goes to the
      search
    </label>
  );
}

/** `/` goes to the search, unless somebody types. */
function useSlash(field: React.RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (event.key !== '/' || isTyping || localStorage.getItem('portolan-keys') === 'off') return;
      event.preventDefault();
      field.current?.focus();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [field]);
}

const columns = ['Service', 'State', 'Type', 'Exported by', 'Ready', 'Address'];

function List({ rows }: { readonly rows: readonly ServiceRow[] }) {
  const box = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard.
    <section className="table-box" ref={box} tabIndex={0} aria-label="Services, scrolls">
      <table className="virtual" aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((name) => (
              <th key={name} scope="col" className={name === 'Ready' ? 'number' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap height={above} />
          {items.map(({ index }) => {
            const row = rows[index];
            return row === undefined ? null : <Row key={row.key} row={row} index={index} />;
          })}
          <Gap height={below} />
        </tbody>
      </table>
    </section>
  );
}

/** Stands for rows that are not in sight. */
function Gap({ height }: { readonly height: number }) {
  if (height <= 0) return null;
  return (
    <tr className="gap">
      <td colSpan={columns.length} style={{ height }} />
    </tr>
  );
}

function Row({ row, index }: { readonly row: ServiceRow; readonly index: number }) {
  const ready = row.exporters.reduce((sum, one) => sum + (one.ready ?? 0), 0);
  const isKnown = row.exporters.some((one) => one.ready !== undefined);
  const exporters = row.exporters.map(({ cluster }) => cluster).join(', ');
  return (
    <tr aria-rowindex={index + 2}>
      <th scope="row">
        <Link href={`/services/${row.key}`}>{row.key}</Link>
      </th>
      <td title={row.says}>
        <HealthBadge health={row.health} />
      </td>
      <td>{row.type}</td>
      <td title={exporters}>{exporters || '–'}</td>
      <td className="number">{isKnown ? ready : '?'}</td>
      <td className="mono">{row.ips.join(', ') || '–'}</td>
    </tr>
  );
}
