// Recent events: exports made, conflicts begun, leases lost, and Events of Kubernetes, from the objects; the session
// adds the changes that it saw itself. Pure but for the copies it reads.

import type { ServiceExport } from '../../clusterset/kinds/service-export.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import type { KubernetesEvent } from '../../kube/objects/event.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import type { EventRow } from '../wire/rows.ts';
import { idOf, verdictsOf } from './landscape.ts';

const eventsMax = 300;

/** The newest, newest first. */
export function eventRows(homes: readonly HomeWatch[], seen: readonly EventRow[]): EventRow[] {
  const all = [...seen];
  for (const watch of homes) {
    const cluster = idOf(watch);
    for (const one of watch.member?.exports.values() ?? []) all.push(...exportEvents(one, cluster));
    for (const one of watch.member?.events.values() ?? []) all.push(...kubernetesEvent(one, cluster));
    all.push(...leaseEvents(watch));
  }
  const newest = all.filter(({ atMs }) => !Number.isNaN(atMs)).sort((a, b) => b.atMs - a.atMs);
  return newest.slice(0, eventsMax);
}

function exportEvents(one: ServiceExport, cluster: string): EventRow[] {
  const subject = keyOf(one);
  const id = `${cluster} ${subject}`;
  const made = Date.parse(one.metadata.creationTimestamp ?? '');
  const rows: EventRow[] = [
    { id: `export ${id}`, atMs: made, cluster, kind: 'export', health: 'ok', subject, text: 'was exported' },
  ];
  const conflict = conditionOf(one.status?.conditions, 'Conflict');
  if (conflict?.status === 'True') {
    const text = `is in conflict, ${conflict.reason.replaceAll(',', ', ')}: ${conflict.message}`;
    const atMs = Date.parse(conflict.lastTransitionTime);
    rows.push({ id: `conflict ${id}`, atMs, cluster, kind: 'conflict', health: 'conflict', subject, text });
  }
  return rows;
}

function leaseEvents(watch: HomeWatch): EventRow[] {
  const cluster = idOf(watch);
  return [...verdictsOf(watch)].map(([other, { verdict, since }]) => {
    const isStale = verdict === 'stale';
    return {
      id: `lease ${cluster} ${other} ${since}`,
      atMs: Date.parse(since),
      cluster,
      kind: 'lease',
      health: isStale ? 'stale' : 'ok',
      subject: `cluster ${other}`,
      text: isStale ? 'was lost: its lease has run out' : 'is back and trusted again',
    };
  });
}

/** The export itself tells the same. */
const toldByExports = new Set(['Exported', 'Conflict']);

function kubernetesEvent(event: KubernetesEvent, cluster: string): EventRow[] {
  const { kind, namespace, name } = event.involvedObject;
  if (kind === 'ServiceExport' && toldByExports.has(event.reason)) return [];
  const subject = `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  const atMs = Date.parse(event.lastTimestamp ?? event.firstTimestamp ?? event.metadata.creationTimestamp ?? '');
  const health = event.type === 'Warning' ? 'failed' : 'ok';
  const text = `${event.reason}: ${event.message}`.slice(0, 500);
  return [{ id: `event ${cluster} ${keyOf(event)}`, atMs, cluster, kind: 'event', health, subject, text }];
}
