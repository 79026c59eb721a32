// Random sequences of appliers, updates and forced takeovers, in which objects, owners and conflicts equal those of a model.
// PORTOLAN_APPLY_SEQUENCES sets their number; 20,000 take about half a minute.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inOneGo } from '../../base/turns.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Schema } from '../schema/schema.ts';
import { pathsOf } from './field-set.ts';
import { formatManagers, type Manager, type ManagerId, parseManagers } from './managers.ts';
import { typeOfKind } from './merge-type.ts';
import { ApplyConflict, allFields, applyInPieces, trackUpdate } from './ownership.ts';
import { type Content, noContent, OwnershipModel } from './testing/model.ts';

const schema: Schema = {
  type: 'object',
  properties: {
    texts: { type: 'object', additionalProperties: { type: 'string' } },
    items: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['key'],
      items: { type: 'object', properties: { key: { type: 'string' }, note: { type: 'string' } } },
    },
  },
};
const type = typeOfKind(schema, undefined);
const time = '2026-01-01T00:00:00Z';
const head = { apiVersion: 'ex.io/v1', kind: 'Thing', metadata: { name: 'x' } };

type Step =
  | { readonly kind: 'apply'; readonly who: string; readonly content: Content; readonly isForced: boolean }
  | { readonly kind: 'update'; readonly who: string; readonly content: Content };

const value = fc.constantFrom('1', '2');
const note = fc.constantFrom('', 'n', 'm');
const some = <T>(names: readonly string[], one: fc.Arbitrary<T>) =>
  fc.dictionary(fc.constantFrom(...names), one, { maxKeys: 3, noNullPrototype: true });
const content: fc.Arbitrary<Content> = fc.record({
  texts: some(['x', 'y', 'z'], value),
  items: some(['1', '2'], note),
});
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('apply' as const),
      who: fc.constantFrom('a', 'b', 'c'),
      content,
      isForced: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('update' as const), who: fc.constantFrom('u', 'v'), content }),
  },
);

class Product {
  object: AnyObject = objectOf(noContent);
  managers: readonly Manager[] = [];

  update(who: string, next: Content): void {
    const after = objectOf(next);
    const writer: ManagerId = { ...identity(who), operation: 'Update' };
    if (this.managers.length > 0)
      this.managers = stored(trackUpdate({ type, before: this.object, after, managers: this.managers, writer, time }));
    this.object = after;
  }

  apply(who: string, applied: Content, isForced: boolean): string[] {
    const earlier: Manager = { ...identity('earlier'), operation: 'Update', fields: allFields(type, this.object) };
    try {
      const pieces = applyInPieces({
        type,
        live: this.object,
        managers: this.managers.length > 0 ? this.managers : [earlier],
        applier: { ...identity(who), operation: 'Apply' },
        configuration: objectOf(applied),
        isForced,
        time,
        complete: (made) => made,
      });
      const { object, managers } = inOneGo(pieces);
      this.object = object;
      this.managers = stored(managers);
      return [];
    } catch (error) {
      if (!(error instanceof ApplyConflict)) throw error;
      return error.conflicts.map(({ manager }) => manager.manager).sort();
    }
  }

  get content(): Content {
    const texts = (this.object['texts'] ?? {}) as Record<string, string>;
    const items = (this.object['items'] ?? []) as { key: string; note?: string }[];
    return { texts, items: Object.fromEntries(items.map((item) => [item.key, item.note ?? ''])) };
  }

  get owners(): string[] {
    const byField = new Map<string, string[]>();
    for (const { manager, fields } of this.managers)
      for (const path of pathsOf(fields)) byField.set(nameOf(path), [...(byField.get(nameOf(path)) ?? []), manager]);
    return [...byField].map(([field, managers]) => `${field}: ${managers.sort().join(' ')}`).sort();
  }
}

function identity(manager: string): Omit<ManagerId, 'operation'> {
  return { manager, apiVersion: 'ex.io/v1', subresource: '' };
}

/** As they come back from the store. */
function stored(managers: readonly Manager[]): readonly Manager[] {
  return parseManagers(JSON.parse(JSON.stringify(formatManagers(managers))))!;
}

function objectOf({ texts, items }: Content): AnyObject {
  const list = Object.entries(items).map(([key, text]) => ({ key, ...(text === '' ? {} : { note: text }) }));
  return {
    ...structuredClone(head),
    ...(Object.keys(texts).length === 0 ? {} : { texts }),
    ...(list.length === 0 ? {} : { items: list }),
  } as AnyObject;
}

function nameOf([container = '', element = '', field = '']: readonly string[]): string {
  if (element === '') return container.slice(2);
  if (container === 'f:texts') return `text ${element.slice(2)}`;
  const { key } = JSON.parse(element.slice(2)) as { key: string };
  return `${field === '' ? 'item' : field.slice(2)} ${key}`;
}

test('ownership: random sequences of appliers and updaters -> objects, owners and conflicts as in the model', () => {
  const numRuns = Number(process.env['PORTOLAN_APPLY_SEQUENCES'] ?? 2000);
  fc.assert(
    fc.property(fc.array(steps, { minLength: 2, maxLength: 10 }), (sequence) => {
      const model = new OwnershipModel();
      const product = new Product();
      for (const step of sequence) {
        if (step.kind === 'update') {
          model.update(step.who, step.content);
          product.update(step.who, step.content);
        } else {
          const { isForced } = step;
          expect(product.apply(step.who, step.content, isForced)).toEqual(
            model.apply(step.who, step.content, { isForced }),
          );
        }
        expect(product.content).toEqual(model.content);
        expect(product.owners).toEqual(model.owners);
      }
    }),
    { numRuns },
  );
}, 300_000);
