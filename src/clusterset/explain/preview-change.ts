// Previews a change of this cluster's exports: the conditions of its own exports, the import, and
// what the exports of other clusters would say. By the rules of the agents, on what lies at the broker now.

import type { WantedCondition } from '../../kube/objects/conditions.ts';
import type { ImportType, ServiceImport } from '../kinds/service-import.ts';
import { exportConditions } from '../rules/export-conditions.ts';
import type { Conflict } from '../rules/merge/merged.ts';
import { type ClusterFacts, type Prediction, predict } from './predict.ts';
import { brokerFacts, type SetState } from './set-state.ts';

export interface PreviewRequest {
  readonly state: SetState;
  /** This cluster's home as it is, and as it would be. */
  readonly present: ClusterFacts;
  readonly next: ClusterFacts;
}

export interface ServicePreview {
  readonly service: string;
  /** Conditions of this cluster's export; absent if there would be none. */
  readonly conditions: readonly WantedCondition[] | undefined;
  /** In this cluster, addresses aside; absent if there would be none. */
  readonly import: ServiceImport['spec'] | undefined;
  readonly clusters: readonly string[];
  readonly conflicts: readonly Conflict[];
  /** Visible changes of the import. */
  readonly changes: readonly string[];
  /** Changes of the exports of other clusters. */
  readonly elsewhere: readonly ClusterChange[];
  /** Set if the import is there before and after, and its type would not be the same. */
  readonly flip: { readonly from: ImportType; readonly to: ImportType } | undefined;
}

interface ClusterChange {
  readonly cluster: string;
  readonly before: readonly WantedCondition[];
  readonly after: readonly WantedCondition[];
}

export function previewChange(request: PreviewRequest, key: string): ServicePreview {
  return previewChanges(request, [key])[0]!;
}

/** Previews many services; shared work is done once. */
export function previewChanges(
  { state, present, next }: PreviewRequest,
  keys: readonly string[],
): readonly ServicePreview[] {
  const others = brokerFacts(state, present.id);
  const before = predict([...others, present], state.policy);
  const after = predict([...others, next], state.policy);
  return keys.map((key) => previewOne(key, { present, others, before, after }));
}

interface Prospect {
  readonly present: ClusterFacts;
  readonly others: readonly ClusterFacts[];
  readonly before: Prediction;
  readonly after: Prediction;
}

function previewOne(key: string, { present, others, before, after }: Prospect): ServicePreview {
  const merge = after.merge(key);
  const from = before.merge(key)?.type;
  return {
    service: key,
    conditions: after.conditions(present.id, key),
    import: after.importSpec(present.id, key),
    clusters: after.merge(key, present.id)?.clusters ?? [],
    conflicts: merge?.conflicts ?? [],
    changes: specChanges(before.importSpec(present.id, key), after.importSpec(present.id, key)),
    elsewhere: others.flatMap(({ id }) => changeIn(id, key, before, after)),
    flip: from !== undefined && merge !== undefined && from !== merge.type ? { from, to: merge.type } : undefined,
  };
}

function changeIn(cluster: string, key: string, before: Prediction, after: Prediction): ClusterChange[] {
  if (after.shard(cluster, key) === undefined) return [];
  const change = { cluster, before: conditionsOf(cluster, key, before), after: conditionsOf(cluster, key, after) };
  return JSON.stringify(change.before) === JSON.stringify(change.after) ? [] : [change];
}

/** Conditions of an export in another cluster, which is valid: else it would have no record at the broker. */
function conditionsOf(cluster: string, key: string, prediction: Prediction): WantedCondition[] {
  const merge = prediction.merge(key);
  const { readyEndpoints: readyCount = 0, exportTo } = prediction.shard(cluster, key)?.spec ?? {};
  const publication = { kind: 'published', notes: [], exportTo, readyCount, refused: [] } as const;
  return exportConditions({ cluster, validity: { kind: 'valid' }, publication, merge });
}

function specChanges(before: ServiceImport['spec'] | undefined, after: ServiceImport['spec'] | undefined): string[] {
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return ['the import would be made'];
  if (after === undefined) return ['the import would be removed'];
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof ServiceImport['spec'])[];
  const say = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));
  return fields
    .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
    .map((field) => `spec.${field}: ${say(before[field])} would become ${say(after[field])}`);
}

export function conditionIn(
  conditions: readonly WantedCondition[] | undefined,
  type: 'Valid' | 'Ready' | 'Conflict',
): WantedCondition | undefined {
  return conditions?.find((condition) => condition.type === type);
}
