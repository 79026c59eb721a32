// The Event kind, in the words of the core group and in those of events.k8s.io. They are kept apart: an event is read
// in the words it was written in.

import type { KubernetesEvent } from '../../kube/objects/event.ts';
import { eventType } from '../../kube/objects/event.ts';
import { builtinKind } from './builtin.ts';
import { column, formatAge, nameColumn, wideColumn } from './columns.ts';
import type { Column, Kind } from './kind.ts';
import { type NewEvent, newEventType, validateEvent, validateNewEvent } from './rules/event-validation.ts';

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

export const newEventKind: Kind = builtinKind<NewEvent>({
  ...newEventType,
  shortNames: ['ev'],
  hasAge: false,
  columns: [
    column<NewEvent>('Last Seen', (event, nowMs) =>
      formatAge(event.series?.lastObservedTime ?? event.eventTime, nowMs),
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
