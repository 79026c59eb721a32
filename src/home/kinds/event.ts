// The Event kind, in the words of the core group and in those of events.k8s.io. An Event is stored once, in the words of the
// core group, and read in those of the group that is asked. It lies in the namespace of its subject, or in `default` if that has none.

import { checkOneOf, checkRequiredText } from '../../kube/objects/checks.ts';
import { eventType, type KubernetesEvent } from '../../kube/objects/event.ts';
import { type FieldError, invalid, required, tooLong } from '../../kube/objects/field-error.ts';
import { isQualifiedName } from '../../kube/objects/names.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { column, formatAge, nameColumn, wideColumn } from '../model/columns.ts';
import type { Column, Kind, StoredAs } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';

export const newEventType: ResourceType = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  isNamespaced: true,
};

type CoreEvent = KubernetesEvent & {
  eventTime?: string;
  series?: { count?: number; lastObservedTime?: string };
  source?: { component?: string; host?: string };
  involvedObject: KubernetesEvent['involvedObject'] & { fieldPath?: string };
};

const wideNameColumn: Column = { ...nameColumn, priority: 1 };

export const eventKind: Kind = builtinKind<CoreEvent>({
  ...eventType,
  shortNames: ['ev'],
  hasAge: false,
  columns: [
    column<CoreEvent>('Last Seen', (event, nowMs) => lastSeen(event, nowMs)),
    column<CoreEvent>('Type', (event) => event.type ?? ''),
    column<CoreEvent>('Reason', (event) => event.reason ?? ''),
    column<CoreEvent>('Object', ({ involvedObject: about }) => objectText(about)),
    wideColumn<CoreEvent>('Subobject', ({ involvedObject: about }) => about?.fieldPath ?? ''),
    wideColumn<CoreEvent>('Source', formatSource),
    column<CoreEvent>('Message', (event) => (event.message ?? '').trim()),
    wideColumn<CoreEvent>('First Seen', (event, nowMs) => formatAge(event.firstTimestamp ?? event.eventTime, nowMs)),
    wideColumn<CoreEvent>('Count', (event) => String(event.series?.count ?? event.count ?? 1)),
    wideNameColumn,
  ],
  validate: validateEvent,
  selectableFields: {
    'involvedObject.kind': ({ involvedObject: about }) => about?.kind ?? '',
    'involvedObject.namespace': ({ involvedObject: about }) => about?.namespace ?? '',
    'involvedObject.name': ({ involvedObject: about }) => about?.name ?? '',
    'involvedObject.uid': ({ involvedObject: about }) => about?.uid ?? '',
    'involvedObject.apiVersion': ({ involvedObject: about }) => about?.apiVersion ?? '',
    'involvedObject.resourceVersion': ({ involvedObject: about }) => about?.resourceVersion ?? '',
    'involvedObject.fieldPath': ({ involvedObject: about }) => about?.fieldPath ?? '',
    reason: (event) => event.reason ?? '',
    reportingComponent: (event) => event.reportingComponent ?? '',
    source: (event) => event.source?.component || event.reportingComponent || '',
    type: (event) => event.type ?? '',
  },
});

/** Field of the core group, field of events.k8s.io. All others have the same name in both. */
const renamedFields: readonly (readonly [string, string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['reportingComponent', 'reportingController'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
];
const newNames = new Map(renamedFields);
const coreNames = new Map(renamedFields.map(([core, other]) => [other, core]));

export const storedAsCoreEvent: StoredAs = {
  ...{ group: eventType.group, plural: eventType.plural },
  fromStored: (event) => renamed(event, newNames),
  toStored: (event) => renamed({ regarding: {}, ...event }, coreNames),
};

function renamed(event: AnyObject, names: ReadonlyMap<string, string>): AnyObject {
  return Object.fromEntries(
    Object.entries(event).map(([name, value]) => [names.get(name) ?? name, value]),
  ) as AnyObject;
}

export const newEventKind: Kind = builtinKind<NewEvent>({
  ...newEventType,
  storedAs: storedAsCoreEvent,
  requiredOfSome: ['eventTime'],
  shortNames: ['ev'],
  hasAge: false,
  columns: [
    column<NewEvent>('Last Seen', (event, nowMs) =>
      formatAge(event.series?.lastObservedTime ?? event.deprecatedLastTimestamp ?? event.eventTime, nowMs),
    ),
    column<NewEvent>('Type', (event) => event.type ?? ''),
    column<NewEvent>('Reason', (event) => event.reason ?? ''),
    column<NewEvent>('Object', (event) => objectText(event.regarding)),
    column<NewEvent>('Message', (event) => (event.note ?? '').trim()),
    wideNameColumn,
  ],
  validate: validateNewEvent,
  selectableFields: {
    'regarding.kind': ({ regarding }) => regarding?.kind ?? '',
    'regarding.namespace': ({ regarding }) => regarding?.namespace ?? '',
    'regarding.name': ({ regarding }) => regarding?.name ?? '',
    'regarding.uid': ({ regarding }) => regarding?.uid ?? '',
    reason: (event) => event.reason ?? '',
    reportingController: (event) => event.reportingController ?? '',
    type: (event) => event.type ?? '',
  },
});

function lastSeen(event: CoreEvent, nowMs: number): string {
  return formatAge(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime, nowMs);
}

function objectText(about: { kind?: string; name?: string } | undefined): string {
  return `${(about?.kind ?? '').toLowerCase()}/${about?.name ?? ''}`;
}

function formatSource(event: CoreEvent): string {
  const component = event.source?.component || event.reportingComponent || '';
  return event.source?.host ? `${component}, ${event.source.host}` : component;
}

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

export function validateNewEvent(event: NewEvent, previous?: NewEvent): FieldError[] {
  const errors: FieldError[] = [];
  checkNamespace(errors, 'regarding.namespace', event.regarding?.namespace, event);
  // Written in the words of the core group, which asks for less.
  if (previous !== undefined && !previous.eventTime) return errors;
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
  // Events about cluster-scoped objects may lie in any namespace.
  if (!about) return;
  errors.push(invalid(field, about, 'does not match event.namespace'));
}
