// The conditions of a ServiceExport: whether it can be exported, whether it is, and on what the clusters
// disagree. Pure; when they were last true is added by conditions.ts.

import { isDns1035Label } from '../../base/dns/labels.ts';
import { clipText } from '../../base/text/clip-text.ts';
import { digestOf } from '../../kube/objects/bounded-name.ts';
import type { WantedCondition } from '../../kube/objects/conditions.ts';
import type { Condition } from '../../kube/objects/object.ts';
import type { Service } from '../../kube/objects/service.ts';
import { formatConflict } from './merge/conflicts.ts';
import type { MergeWithConflicts } from './merge/merge.ts';

/** As the definition of conditions has it: one that is longer is refused as a whole. */
const messageLengthMax = 32_768;
const conflictsShownMax = 20;
const clustersShownMax = 20;

export type ExportValidity =
  | { readonly kind: 'valid' }
  | { readonly kind: 'invalid'; readonly reason: 'NoService' | 'InvalidServiceType'; readonly message: string };

export type Publication =
  | { readonly kind: 'pending'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }
  /** The broker has no more room for this member. */
  | { readonly kind: 'over-quota'; readonly message: string }
  /** The set's admin does not let this cluster export it. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The shard and its slices lie at the broker; `notes` say what was left out of them, and why. */
  | {
      readonly kind: 'published';
      readonly notes: readonly string[];
      /** Ids of the clusters that may import it, as the record at the broker has them; undefined is all. */
      readonly exportTo?: readonly string[] | undefined;
      /** Clusters that it is sealed for, and why those that are named are not among them; undefined if it is not sealed. */
      readonly sealedFor?: { readonly readers: readonly string[]; readonly without: readonly string[] } | undefined;
      /** Endpoints that accept connections. */
      readonly readyCount: number;
      /** Addresses of endpoints that were refused, and why. */
      readonly refused: readonly string[];
    };

export interface ExportFacts {
  readonly cluster: string;
  readonly validity: ExportValidity;
  readonly publication: Publication;
  /** Merge of all clusters' shards; undefined while none is known. */
  readonly merge: MergeWithConflicts | undefined;
  /** RFC 3339: the broker has not answered since then, so all that is known from it is as old. */
  readonly brokerAwaySince?: string | undefined;
}

/** A Service that is being deleted still exists: its endpoints drain until it is gone. */
export function judgeService(service: Service | undefined, key: string): ExportValidity {
  if (service === undefined) {
    return { kind: 'invalid', reason: 'NoService', message: noServiceMessage(key) };
  }
  if (service.spec?.type === 'ExternalName') {
    const message = `service ${key} is of type ExternalName, which has nothing to export; create it in each cluster instead`;
    return { kind: 'invalid', reason: 'InvalidServiceType', message };
  }
  return { kind: 'valid' };
}

function noServiceMessage(key: string): string {
  const problem = serviceNameProblem(key.slice(key.indexOf('/') + 1));
  if (problem === undefined) return `service ${key} does not exist in this cluster; create it`;
  return `service ${key} cannot exist: its name ${problem}`;
}

/** Why no Service can have the name; undefined if one can. */
export function serviceNameProblem(name: string): string | undefined {
  return isDns1035Label(name)[0];
}

/** Reasons of Ready with which a service is part of the import, whether anything behind it can be reached or not. */
export const exportedReasons: ReadonlySet<string> = new Set(['Exported', 'EndpointsRefused', 'NoReadyEndpoints']);

/**
 * How the message of Ready begins. A limit is an annotation, which has no generation: by this text a reader sees whether
 * the condition is about the present limit.
 */
function exportedText({ exportTo, isSealed }: ExportLimit): string {
  const sealed = isSealed ? ', sealed' : '';
  if (exportTo === undefined) return `exported to the clusterset${sealed}`;
  if (exportTo.length === 0) return `exported to no other cluster${sealed}`;
  const shown = exportTo.slice(0, clustersShownMax).join(', ');
  const more = exportTo.length - clustersShownMax;
  return `exported to ${shown}${more > 0 ? ` and ${more} more (${digestOf(exportTo.join())})` : ''} only${sealed}`;
}

export interface ExportLimit {
  /** Ids of the clusters that may import it; undefined is all. */
  readonly exportTo: readonly string[] | undefined;
  readonly isSealed: boolean;
}

/** Whether a condition Ready is about the export with this limit. */
export function isAboutLimit({ message }: Pick<Condition, 'message'>, limit: ExportLimit): boolean {
  const text = exportedText(limit);
  return message === text || message.startsWith(`${text};`) || message.startsWith(`${text}, but`);
}

/** Always the same three, in the same order. */
export function exportConditions(facts: ExportFacts): WantedCondition[] {
  const fromBroker = [readyCondition(facts), conflictCondition(facts)];
  return [validCondition(facts.validity), ...fromBroker.map((one) => remembered(one, facts))];
}

/** What was true when the broker answered last may be so no longer. A fault that lies in this cluster is still one. */
function remembered(condition: WantedCondition, { validity, brokerAwaySince }: ExportFacts): WantedCondition {
  if (brokerAwaySince === undefined || validity.kind === 'invalid') return condition;
  return outdated(condition, brokerAwaySince);
}

function outdated(condition: WantedCondition, brokerAwaySince: string): WantedCondition {
  const { type, status, message } = condition;
  if (type === 'Ready' && status !== 'True') return condition;
  const reason = type === 'Ready' ? 'BrokerAway' : condition.reason;
  const before = `the broker has not answered since ${brokerAwaySince}; before that: `;
  return { type, status: 'Unknown', reason, message: clipText(`${before}${message}`, messageLengthMax) };
}

/** Those of `present` that rest on the broker and do not say yet that it is away, for a writer that knows nothing else. */
export function outdatedConditions(
  present: readonly Condition[] | undefined,
  brokerAwaySince: string,
): WantedCondition[] {
  if (present?.some(({ type, status }) => type === 'Valid' && status === 'False')) return [];
  return (present ?? [])
    .filter(
      ({ type, status }) => (type === 'Ready' && status === 'True') || (type === 'Conflict' && status !== 'Unknown'),
    )
    .map((condition) => outdated(condition, brokerAwaySince));
}

function validCondition(validity: ExportValidity): WantedCondition {
  if (validity.kind === 'valid')
    return { type: 'Valid', status: 'True', reason: 'Valid', message: 'the service can be exported' };
  return { type: 'Valid', status: 'False', reason: validity.reason, message: validity.message };
}

function readyCondition(facts: ExportFacts): WantedCondition {
  const { validity, publication, merge, cluster } = facts;
  const notReady = (reason: string, message: string): WantedCondition => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
  });
  if (validity.kind === 'invalid') return notReady('Pending', 'nothing is exported until the export is valid');
  if (publication.kind === 'pending') return notReady('Pending', publication.message);
  if (publication.kind === 'failed') return notReady('Failed', publication.message);
  if (publication.kind === 'over-quota') return notReady('QuotaExceeded', publication.message);
  if (publication.kind === 'refused') return notReady('Refused', publication.message);
  if (merge === undefined)
    return notReady('Pending', 'the export is published and has not come back from the broker yet');
  if (merge.excluded.includes(cluster)) {
    const message = `not part of the import while its type differs from ${merge.type} of cluster ${merge.decider.cluster}`;
    return notReady('Failed', message);
  }
  const { readyCount, refused, exportTo, sealedFor } = publication;
  const limit = { exportTo, isSealed: sealedFor !== undefined };
  const nothing = readyCount === 0 ? ', but nothing can be reached here: no endpoint is ready and usable' : '';
  const message = clipText(
    [`${exportedText(limit)}${nothing}`, ...shownOf(sealedFor?.without ?? []), ...publication.notes, ...refused].join(
      '; ',
    ),
    messageLengthMax,
  );
  if (readyCount === 0) return notReady(refused.length > 0 ? 'EndpointsRefused' : 'NoReadyEndpoints', message);
  return { type: 'Ready', status: 'True', reason: refused.length > 0 ? 'EndpointsRefused' : 'Exported', message };
}

function shownOf(without: readonly string[]): string[] {
  const more = without.length - clustersShownMax;
  return [...without.slice(0, clustersShownMax), ...(more > 0 ? [`${more} more see nothing either`] : [])];
}

function conflictCondition({ validity, merge, cluster }: ExportFacts): WantedCondition {
  const conflicts = validity.kind === 'valid' ? (merge?.conflicts ?? []) : [];
  if (conflicts.length === 0) {
    return { type: 'Conflict', status: 'False', reason: 'NoConflicts', message: 'all exporting clusters agree' };
  }
  const reasons = [...new Set(conflicts.map(({ reason }) => reason))];
  const shown = conflicts.slice(0, conflictsShownMax).map((conflict) => formatConflict(conflict, cluster));
  const more = conflicts.length - shown.length;
  const message = clipText([...shown, ...(more > 0 ? [`${more} more conflicts`] : [])].join('. '), messageLengthMax);
  return { type: 'Conflict', status: 'True', reason: reasons.join(','), message };
}
