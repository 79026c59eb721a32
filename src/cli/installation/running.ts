// The end of `install` and `upgrade`: which image each part has now, how many of its Pods are new, and the versions that its
// processes report themselves.

import { version } from '../../base/version.ts';
import { imageOf, isPinned } from '../../install/image.ts';
import type { Client } from '../../kube/client/client.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { partLabel } from '../../kube/objects/part-lease.ts';
import { partStatuses } from '../../kube/objects/part-status.ts';
import { formatTable } from '../table.ts';
import { missingPods, type Workload } from './ready.ts';

interface RunningRequest {
  readonly objects: readonly Manifest[];
  /** The value as given. */
  readonly image: string;
  readonly nowMs: number;
}

/** Nothing where no Pods were installed. */
export async function runningLines(client: Client, { objects, image, nowMs }: RunningRequest): Promise<string[]> {
  const workloads = objects.filter(({ type }) => type.group === 'apps');
  if (workloads.length === 0) return [];
  const reported = await reportedVersions(client, nowMs);
  const rows = [];
  for (const { type, object } of workloads) {
    const found = await client.get<Workload>(type, object.metadata);
    const part = object.metadata.name.replace(/^portolan-/, '');
    rows.push([part, reported.get(part) ?? '-', imagesIn(found), missingPods(found) ?? 'all new and ready']);
  }
  return [...formatTable(['PART', 'REPORTS', 'IMAGE', 'PODS'], rows), ...pinnedLines(image)];
}

function pinnedLines(image: string): string[] {
  if (!isPinned(image) || image === imageOf(image.replace(/:[^/:]*$/, ''))) return [];
  const hint = image.includes('@') ? '' : `; --set image=${image.replace(/:[^/:]*$/, '')} follows the version`;
  return [`note: the value image pins ${image}, and this is portolan ${version}${hint}`];
}

function imagesIn({ spec }: Workload): string {
  const images = (spec?.template?.spec?.containers ?? []).map(({ image }) => image ?? '');
  return [...new Set(images)].join(', ');
}

/** Each part with the versions of its processes that report, in one text. */
async function reportedVersions(client: Client, nowMs: number): Promise<Map<string, string>> {
  const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace, labelSelector: partLabel });
  const found = new Map<string, Set<string>>();
  for (const { part, state, version: theirs } of partStatuses(items, nowMs))
    if (state === 'reporting') found.set(part, (found.get(part) ?? new Set()).add(theirs || 'unknown'));
  return new Map([...found].map(([part, versions]) => [part, [...versions].sort().join(', ')]));
}
