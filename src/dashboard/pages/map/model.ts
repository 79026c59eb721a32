// What the map shows: cards and lines of a set, of one region of it, grouped so that there are never too many. Pure.

import type { ClusterRow, ExternalRow, Health, PeerRow, TrafficRow } from '../../wire/rows.ts';

export interface MapInput {
  readonly clusters: readonly ClusterRow[];
  readonly traffic: readonly TrafficRow[];
  readonly peers: readonly PeerRow[];
  readonly external: readonly ExternalRow[];
  /** The region that is open; empty is none. */
  readonly region: string;
}

export interface MapCard {
  readonly id: string;
  readonly kind: 'cluster' | 'region' | 'peer' | 'external' | 'more';
  readonly name: string;
  readonly health: Health;
  readonly says: string;
  /** Cards of one place stand beside each other. */
  readonly place: string;
  /** Cluster ids that it stands for. */
  readonly clusters: readonly string[];
  /** Connections a second of its clients. */
  readonly perSecond: number;
  readonly failedPerSecond: number;
}

export interface MapLine {
  readonly from: string;
  readonly to: string;
  readonly perSecond: number;
  readonly failedPerSecond: number;
  readonly way: 'direct' | 'gateway' | 'none';
}

export interface MapPicture {
  readonly cards: readonly MapCard[];
  readonly lines: readonly MapLine[];
}

/** With more clusters than this, a card is a region. */
const singleMax = 16;
const cardsMax = 30;
const outsideMax = 6;

export function pictureOf(input: MapInput): MapPicture {
  const rates = new Map(input.traffic.map((row) => [row.id, row]));
  const groups = groupsOf(input.clusters);
  const isGrouped = input.clusters.length > singleMax && groups.size > 1;
  const cards: MapCard[] = [];
  for (const [place, rows] of groups) {
    const isOpen = !isGrouped || place === input.region;
    if (isOpen) cards.push(...few(rows, place, rates, isGrouped ? cardsMax - groups.size : cardsMax));
    else cards.push(groupCard(place, rows, rates));
  }
  if (!isGrouped) cards.push(...outside(input));
  return { cards, lines: [...linesOf(input, cards), ...linesOutside(input, cards)] };
}

/** By region; a set without regions by network. */
function groupsOf(clusters: readonly ClusterRow[]): Map<string, ClusterRow[]> {
  const networks = new Set(clusters.map(({ network }) => network));
  const placeOf = ({ region, network }: ClusterRow) =>
    [region || 'no region', networks.size > 1 ? `network ${network || 'unknown'}` : ''].filter((one) => one).join(', ');
  return new Map([...Map.groupBy(clusters, placeOf)].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Those with problems and the busiest are shown first where not all have room. */
function few(rows: ClusterRow[], place: string, rates: ReadonlyMap<string, TrafficRow>, roomFor: number): MapCard[] {
  const cards = rows.map((row) => clusterCard(row, place, rates.get(row.id)));
  if (cards.length <= roomFor) return cards;
  const rank = ({ health, perSecond }: MapCard) => (health === 'ok' ? 0 : 1_000_000) + perSecond;
  const first = new Set(cards.toSorted((a, b) => rank(b) - rank(a)).slice(0, roomFor - 1));
  const rest = rows.filter((_, index) => !first.has(cards[index]!));
  const more = groupCard(place, rest, rates);
  return [
    ...cards.filter((card) => first.has(card)),
    { ...more, id: `more ${place}`, kind: 'more', name: `${rest.length} more` },
  ];
}

function clusterCard(row: ClusterRow, place: string, rate: TrafficRow | undefined): MapCard {
  const { id, health, says, isDraining } = row;
  return {
    ...{ id: `cluster ${id}`, kind: 'cluster', name: id, health, place, clusters: [id] },
    says: isDraining ? `${says}, draining` : says,
    perSecond: rate?.perSecond ?? 0,
    failedPerSecond: rate?.failedPerSecond ?? 0,
  };
}

const worst: readonly Health[] = ['failed', 'stale', 'conflict', 'limited', 'unknown', 'ok'];

function groupCard(place: string, rows: readonly ClusterRow[], rates: ReadonlyMap<string, TrafficRow>): MapCard {
  const bad = rows.filter(({ health }) => health !== 'ok').length;
  const sum = (column: 'perSecond' | 'failedPerSecond') =>
    rows.reduce((total, { id }) => total + (rates.get(id)?.[column] ?? 0), 0);
  return {
    ...{ id: `region ${place}`, kind: 'region', name: place, place, clusters: rows.map(({ id }) => id) },
    health: worst.find((one) => rows.some(({ health }) => health === one)) ?? 'unknown',
    says: bad === 0 ? `${rows.length} clusters` : `${bad} of ${rows.length} not well`,
    perSecond: sum('perSecond'),
    failedPerSecond: sum('failedPerSecond'),
  };
}

function outside({ peers, external }: MapInput): MapCard[] {
  const common = { clusters: [], perSecond: 0, failedPerSecond: 0 };
  const cards: MapCard[] = [
    ...peers.map(({ id, name, health, taking, cluster }): MapCard => {
      const says = `peer of ${cluster}${taking === undefined ? '' : `: ${taking.state}`}`;
      return { ...common, id: `peer ${id}`, kind: 'peer', name, health, says, place: 'outside' };
    }),
    ...external.map(({ id, name, health, says, cluster }): MapCard => {
      const text = `external, ${cluster}: ${says}`;
      return { ...common, id: `external ${id}`, kind: 'external', name, health, says: text, place: 'outside' };
    }),
  ];
  if (cards.length <= outsideMax) return cards;
  const rest = cards.length - outsideMax + 1;
  const more: MapCard = {
    ...common,
    id: 'more outside',
    kind: 'more',
    name: `${rest} more`,
    health: 'ok',
    says: 'peers and external services',
    place: 'outside',
  };
  return [...cards.slice(0, outsideMax - 1), more];
}

/** Rates of pairs, and ways that are broken though nothing goes there. Those inside one card are no line. */
function linesOf({ clusters, traffic }: MapInput, cards: readonly MapCard[]): MapLine[] {
  const cardOf = new Map(cards.flatMap((card) => card.clusters.map((id) => [id, card.id] as const)));
  const ways = new Map(
    clusters.flatMap(({ id, reaches = [] }) => reaches.map(({ cluster, way }) => [`${id} ${cluster}`, way] as const)),
  );
  const lines = new Map<string, MapLine>();
  const add = (source: string, target: string, rate: Pick<MapLine, 'perSecond' | 'failedPerSecond'>) => {
    const [from, to] = [cardOf.get(source), cardOf.get(target)];
    if (from === undefined || to === undefined || from === to) return;
    const known = ways.get(`${source} ${target}`);
    const old = lines.get(`${from} ${to}`);
    lines.set(`${from} ${to}`, {
      ...{ from, to },
      perSecond: (old?.perSecond ?? 0) + rate.perSecond,
      failedPerSecond: (old?.failedPerSecond ?? 0) + rate.failedPerSecond,
      way: known === 'none' ? 'none' : (old?.way ?? (known === 'gateway' ? 'gateway' : 'direct')),
    });
  };
  for (const { id, to } of traffic) for (const { id: target, ...rate } of to) add(id, target, rate);
  const isFew = clusters.length <= singleMax;
  const none = { perSecond: 0, failedPerSecond: 0 };
  // The importing cluster connects.
  for (const { id, exportsTo } of clusters)
    for (const target of exportsTo) if (isFew || ways.get(`${target} ${id}`) === 'none') add(target, id, none);
  return [...lines.values()];
}

function linesOutside({ peers, external }: MapInput, cards: readonly MapCard[]): MapLine[] {
  const ids = new Set(cards.map(({ id }) => id));
  const line = (from: string, to: string): MapLine => ({ from, to, perSecond: 0, failedPerSecond: 0, way: 'direct' });
  return [
    ...peers.map(({ id, cluster }) => line(`cluster ${cluster}`, `peer ${id}`)),
    ...external.map(({ id, cluster }) => line(`cluster ${cluster}`, `external ${id}`)),
  ].filter(({ from, to }) => ids.has(from) && ids.has(to));
}

/** Failures by the share of all: a few among many are a warning. */
export function lineHealth({ perSecond, failedPerSecond, way }: Omit<MapLine, 'from' | 'to'>): Health {
  if (way === 'none') return 'failed';
  if (perSecond === 0 || failedPerSecond === 0) return 'ok';
  return failedPerSecond / perSecond > 0.05 ? 'failed' : 'conflict';
}

/** Ten times the rate is a line two pixels wider. */
export function lineWidth(perSecond: number): number {
  return perSecond <= 0 ? 1 : Math.min(10, 1.5 + 2 * Math.log10(1 + perSecond));
}
