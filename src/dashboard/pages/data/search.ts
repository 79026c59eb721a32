// What a text may mean, best first: names that begin with it, then those that contain it. Pure.

import type { ClusterRow, ServiceRow } from '../../wire/rows.ts';
import type { CodeDoc } from '../../wire/views.ts';

export interface Hit {
  readonly kind: string;
  readonly text: string;
  readonly path: string;
}

interface Searched {
  readonly services: readonly Pick<ServiceRow, 'key' | 'ips'>[];
  readonly clusters: readonly Pick<ClusterRow, 'id'>[];
  readonly codes: readonly Pick<CodeDoc, 'code' | 'title'>[];
  readonly views: readonly (readonly [path: string, name: string])[];
}

const hitsMax = 12;
/** Looked at; more than this begin with the text only if the text is short. */
const foundMax = 200;

export function findAll(text: string, { services, clusters, codes, views }: Searched): Hit[] {
  const wanted = text.trim().toLowerCase();
  const found: { readonly rank: number; readonly hit: Hit }[] = [];
  const consider = (names: readonly string[], hit: Hit) => {
    if (found.length >= foundMax) return;
    const places = names.map((name) => name.toLowerCase().indexOf(wanted)).filter((place) => place >= 0);
    if (places.length > 0) found.push({ rank: Math.min(...places) === 0 ? 0 : 1, hit });
  };
  for (const [path, name] of views) consider([name], { kind: 'view', text: name, path });
  if (wanted !== '') {
    for (const { id } of clusters)
      consider([id], { kind: 'cluster', text: id, path: `/?${new URLSearchParams({ cluster: id })}` });
    for (const { code, title } of codes)
      consider([code, title], { kind: 'code', text: `${code} ${title}`, path: `/codes/${code}` });
    for (const { key, ips } of services)
      consider([key, key.split('/')[1] ?? '', ...ips], { kind: 'service', text: key, path: `/services/${key}` });
    if (/^[a-z0-9_*-]+(\.[a-z0-9_-]+)+\.?$/.test(wanted))
      found.push({
        rank: 2,
        hit: { kind: 'ask this name', text: wanted, path: `/ask?${new URLSearchParams({ name: wanted })}` },
      });
  }
  return found
    .sort((a, b) => a.rank - b.rank)
    .slice(0, hitsMax)
    .map(({ hit }) => hit);
}
