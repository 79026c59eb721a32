// The schema of metadata, and of the two fields that name an object's type: the same for every kind.

import type { Schema } from './schema.ts';

const text: Schema = { type: 'string' };
const texts: Schema = { type: 'object', additionalProperties: { type: 'string', default: '' } };
const time: Schema = { type: 'string', format: 'date-time', nullable: true };

const ownerReference: Schema = {
  type: 'object',
  description: 'An object that this one belongs to; when it is deleted, this one is too.',
  required: ['apiVersion', 'kind', 'name', 'uid'],
  properties: {
    apiVersion: text,
    kind: text,
    name: text,
    uid: text,
    controller: { type: 'boolean' },
    blockOwnerDeletion: { type: 'boolean' },
  },
  'x-kubernetes-map-type': 'atomic',
};

const managedFields: Schema = {
  type: 'object',
  description: 'Which fields one manager has set.',
  properties: {
    manager: text,
    operation: text,
    apiVersion: text,
    time,
    fieldsType: text,
    fieldsV1: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    subresource: text,
  },
};

export const objectMetaSchema: Schema = {
  type: 'object',
  description: 'Metadata that every object has, such as its name and labels.',
  properties: {
    name: { ...text, description: 'Unique in its namespace among objects of its kind. Cannot be changed.' },
    generateName: { ...text, description: 'Beginning of a name that the server completes if no name is given.' },
    namespace: { ...text, description: 'Where the object lives. Cannot be changed.' },
    selfLink: text,
    uid: { ...text, description: 'Unique in time and space, set by the server.' },
    resourceVersion: { ...text, description: 'The revision of the last change, set by the server.' },
    generation: { type: 'integer', format: 'int64', description: 'Counts changes of what is wanted.' },
    creationTimestamp: { ...time, description: 'When the object was created, set by the server.' },
    deletionTimestamp: { ...time, description: 'When its deletion was asked for, set by the server.' },
    deletionGracePeriodSeconds: { type: 'integer', format: 'int64' },
    labels: { ...texts, description: 'For selecting objects.' },
    annotations: { ...texts, description: 'Notes of tools and people, not for selecting.' },
    // Kubernetes takes these two with repetitions.
    finalizers: { type: 'array', items: text },
    ownerReferences: { type: 'array', items: ownerReference },
    managedFields: { type: 'array', items: managedFields, 'x-kubernetes-list-type': 'atomic' },
  },
};

export const apiVersionSchema: Schema = {
  type: 'string',
  description: 'APIVersion defines the group and version of this representation.',
};
export const kindSchema: Schema = { type: 'string', description: 'The kind of object this is.' };
