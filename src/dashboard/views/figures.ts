// Figures of each cluster for plots: what its resolver counted, read through its home as the bearer, and the age of its lease.

import { errorText } from '../../base/log.ts';
import { PartAdmin } from '../../kube/client/part-admin.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { idOf, type Landscape, setStateOf } from '../rows/landscape.ts';
import type { ClusterFigures, FiguresView } from '../wire/views.ts';
import { resolverOf } from './ask.ts';

const answerMs = 4_000;

export async function readFigures(landscape: Landscape): Promise<FiguresView> {
  const homes = landscape.homes.filter(({ member }) => member !== undefined);
  const ages = leaseAges(landscape);
  const clusters = await Promise.all(homes.map((watch) => figuresOf(watch, landscape.nowMs, ages)));
  return { atMs: landscape.nowMs, clusters: clusters.sort((a, b) => (a.cluster < b.cluster ? -1 : 1)) };
}

function leaseAges(landscape: Landscape): ReadonlyMap<string, number> {
  const members = setStateOf(landscape, { keys: [] })?.members ?? [];
  return new Map(
    members.flatMap(({ id, lease }) => {
      const renewedMs = Date.parse(lease?.spec?.renewTime ?? '');
      return Number.isNaN(renewedMs) ? [] : [[id, Math.max(0, landscape.nowMs - renewedMs) / 1_000] as const];
    }),
  );
}

async function figuresOf(watch: HomeWatch, nowMs: number, ages: ReadonlyMap<string, number>): Promise<ClusterFigures> {
  const cluster = idOf(watch);
  const none = parseFigures('');
  const common = { cluster, leaseAgeSeconds: ages.get(cluster) };
  const lease = resolverOf(watch, nowMs);
  if (lease === undefined) return { ...common, ...none, why: 'no resolver that you may see has reported' };
  try {
    const text = await new PartAdmin(watch.client!).askText(lease, '/metrics', { timeoutMs: answerMs });
    return { ...common, ...parseFigures(text), why: '' };
  } catch (error) {
    return { ...common, ...none, why: errorText(error) };
  }
}

/** From the text of Prometheus. */
export function parseFigures(
  text: string,
): Pick<ClusterFigures, 'queries' | 'cacheHits' | 'cacheMisses' | 'exportSeconds' | 'changeSeconds'> {
  const sum = (name: string, label = '') => {
    const lines = [...text.matchAll(new RegExp(`^${name}(\\{[^}\\n]*\\})? ([0-9.e+-]+)`, 'gm'))];
    const wanted = lines.filter(([, labels = '']) => labels.includes(label));
    const isKnown = text.includes(`# TYPE ${name} `);
    return wanted.length === 0
      ? isKnown
        ? 0
        : undefined
      : wanted.reduce((total, [, , value]) => total + Number(value), 0);
  };
  const mean = (name: string) => {
    const count = sum(`${name}_count`);
    return count === undefined || count === 0 ? undefined : (sum(`${name}_sum`) ?? 0) / count;
  };
  return {
    queries: sum('portolan_dns_queries_total'),
    cacheHits: sum('portolan_dns_cache_total', '"hit"'),
    cacheMisses: sum('portolan_dns_cache_total', '"miss"'),
    exportSeconds: mean('portolan_dns_export_to_answer_seconds'),
    changeSeconds: mean('portolan_dns_change_to_answer_seconds'),
  };
}
