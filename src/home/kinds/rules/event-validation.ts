// What an Event must say: it lies in the namespace of what it is about, or in `default` if that has none.

import { checkOneOf, checkRequiredText } from '../../../kube/objects/checks.ts';
import type { KubernetesEvent } from '../../../kube/objects/event.ts';
import { type FieldError, invalid, required, tooLong } from '../../../kube/objects/field-error.ts';
import { isQualifiedName } from '../../../kube/objects/names.ts';
import type { KubernetesObject, ResourceType } from '../../../kube/objects/object.ts';

export const newEventType: ResourceType = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  isNamespaced: true,
};

/** The same thing in the words of events.k8s.io. */
export interface NewEvent extends KubernetesObject {
  eventTime?: string;
  reportingController?: string;
  reportingInstance?: string;
  action?: string;
  reason?: string;
  regarding?: {
    kind?: string;
    namespace?: string;
    name?: string;
    uid?: string;
    apiVersion?: string;
    fieldPath?: string;
  };
  note?: string;
  type?: string;
  deprecatedCount?: number;
  deprecatedFirstTimestamp?: string;
  deprecatedLastTimestamp?: string;
  deprecatedSource?: { component?: string; host?: string };
  series?: { count: number; lastObservedTime: string };
}

export function validateEvent(event: KubernetesEvent): FieldError[] {
  const errors: FieldError[] = [];
  checkNamespace(errors, 'involvedObject.namespace', event.involvedObject?.namespace, event);
  return errors;
}

const shortTextMax = 128;
const noteBytesMax = 1024;

export function validateNewEvent(event: NewEvent): FieldError[] {
  const errors: FieldError[] = [];
  checkNamespace(errors, 'regarding.namespace', event.regarding?.namespace, event);
  if (event.eventTime === undefined) errors.push(required('eventTime'));
  checkRequiredText(errors, 'reportingController', event.reportingController, isQualifiedName);
  for (const field of ['reportingInstance', 'action', 'reason'] as const) {
    const isTooLong = (text: string) =>
      text.length > shortTextMax ? [`can have at most ${shortTextMax} characters`] : [];
    checkRequiredText(errors, field, event[field], isTooLong);
  }
  checkOneOf(errors, 'type', event.type ?? '', ['Normal', 'Warning']);
  if (Buffer.byteLength(event.note ?? '') > noteBytesMax) errors.push(tooLong('note', noteBytesMax));
  return errors;
}

function checkNamespace(errors: FieldError[], field: string, about: string | undefined, event: KubernetesObject): void {
  const expected = about || 'default';
  if (event.metadata.namespace === expected || event.metadata.namespace === undefined) return;
  // Things that belong to no namespace are told of in any.
  if (!about) return;
  errors.push(invalid(field, about, 'does not match event.namespace'));
}
