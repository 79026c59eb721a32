// A dashboard as Grafana imports it: three panels in a row, time series, a variable for the data source. Pure.

import type { Dashboard, Panel } from './dashboards.ts';

const columns = 24;
const perRow = 3;
const height = 8;
const datasource = { type: 'prometheus', uid: '$datasource' };

export function dashboardJson({ file, title, panels }: Dashboard): object {
  return {
    uid: `portolan-${file.replace('.json', '')}`,
    title,
    tags: ['portolan'],
    schemaVersion: 39,
    editable: true,
    time: { from: 'now-1h', to: 'now' },
    refresh: '30s',
    templating: {
      list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', hide: 0 }],
    },
    panels: panels.map(panelJson),
  };
}

function panelJson({ title, unit, queries }: Panel, index: number): object {
  const width = columns / perRow;
  return {
    id: index + 1,
    title,
    type: 'timeseries',
    datasource,
    gridPos: { x: (index % perRow) * width, y: Math.floor(index / perRow) * height, w: width, h: height },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
    targets: queries.map(([legendFormat, expr], i) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + i),
      datasource,
      expr,
      legendFormat,
    })),
  };
}
