// Since when a cluster could have imported a service. The time of the export travels with the records: `exportedAt` of the
// shard, and an annotation of the import for those that read imports. Each record counts once. Pure.

import { BoundedCache } from '../../base/bounded-cache.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import type { ServiceKey } from './names.ts';

/** On ServiceImports: since when this cluster could have imported the service. */
export const importableSinceAnnotation = 'portolan.dev/importable-since';

export interface ImportableFacts {
  readonly exportedAt: string | undefined;
  /** When this cluster joined. */
  readonly memberSince: string | undefined;
  /** When the namespace came to be in this cluster. */
  readonly namespaceSince: string | undefined;
}

/** A service exported before the cluster joined, or before it had the namespace, was not under way since. */
export function importableSinceMs(facts: ImportableFacts): number | undefined {
  const exportedMs = Date.parse(facts.exportedAt ?? '');
  if (Number.isNaN(exportedMs)) return undefined;
  const others = [facts.memberSince, facts.namespaceSince].map((time) => Date.parse(time ?? ''));
  return Math.max(exportedMs, ...others.filter((ms) => !Number.isNaN(ms)));
}

export function importableSinceAnnotations(sinceMs: number | undefined): Record<string, string> {
  return sinceMs === undefined ? {} : { [importableSinceAnnotation]: formatTime(sinceMs) };
}

export function readImportableSinceMs(
  annotations: Readonly<Record<string, string>> | null | undefined,
): number | undefined {
  const ms = Date.parse(annotations?.[importableSinceAnnotation] ?? '');
  return Number.isNaN(ms) ? undefined : ms;
}

const recordsMax = 100_000;

/**
 * Records that were imported before: a cluster that was away for a while must not count again. Only the last record of each
 * service and cluster is kept, because a service that is exported again and again has a new uid each time.
 */
export class ImportedRecords {
  readonly #uids = new BoundedCache<string>(recordsMax);

  get size(): number {
    return this.#uids.size;
  }

  /** Whether this record of the service was not seen yet; from now on it was. */
  isNew(service: ServiceKey, cluster: string, uid: string): boolean {
    if (this.has(service, cluster, uid)) return false;
    this.#uids.set(keyOf(service, cluster), uid);
    return true;
  }

  has(service: ServiceKey, cluster: string, uid: string): boolean {
    return this.#uids.get(keyOf(service, cluster)) === uid;
  }
}

function keyOf({ namespace, name }: ServiceKey, cluster: string): string {
  return `${cluster} ${namespace}/${name}`;
}
