// Makes CustomResourceDefinitions true: their kinds are served as long as they are there, their status says so, and
// when one is deleted its objects go first.

import { isSameJson } from '../../base/json.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { acceptDefinition, isEstablished, isPlaceTaken } from '../definitions/accept.ts';
import type { CustomResourceDefinition } from '../definitions/definition.ts';
import { kindsFromDefinition } from '../definitions/kind-of.ts';
import type { Engine, Place } from '../model/call.ts';
import { type DefinedKindRules, keyPrefixOf } from '../model/kind.ts';
import { formatTime } from '../model/metadata.ts';
import type { Served } from '../model/registry.ts';
import { StatusError } from '../model/status.ts';
import { stepsOf } from '../model/steps.ts';
import { parseStored } from '../model/stored.ts';
import { create } from '../verbs/create.ts';
import { modify } from '../verbs/modify.ts';
import { applyDefaults } from '../verbs/prepare.ts';
import { systemCall } from '../verbs/system-call.ts';
import { removeAllBelow } from './emptying.ts';
import { type Background, followStore } from './follow.ts';

const definitionType = { group: 'apiextensions.k8s.io', plural: 'customresourcedefinitions' };
const definitionKeyPrefix = keyPrefixOf(definitionType);
const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io';
const retryMs = 1000;

export interface Definitions extends Background {
  /** Serves everything that is stored, before the first request is answered. */
  load(): Promise<void>;
  /** Creates the definitions that are not there and updates those that differ; resolves when they are served. */
  ensure(definitions: readonly AnyObject[]): Promise<void>;
}

export function createDefinitions(engine: Engine, rules: DefinedKindRules = {}): Definitions {
  const serving = new Serving(engine, rules);
  const background = followStore({
    engine,
    name: 'serving of definitions',
    prefix: definitionKeyPrefix,
    onEvent: ({ key }, queue) => queue.add(key.slice(definitionKeyPrefix.length)),
    work: (name) => serving.reconcile(name),
  });
  return {
    ...background,
    load: () => serving.load(),
    ensure: async (definitions) => {
      for (const definition of definitions) await ensureDefinition(engine, definition);
      for (const definition of definitions) await serving.reconcile(definition.metadata.name);
    },
  };
}

function definitionKind(engine: Engine): Served {
  const served = engine.registry.findPlural(definitionType.group, definitionType.plural);
  if (served === undefined) throw new Error('the kinds that are served do not include CustomResourceDefinition');
  return served;
}

class Serving {
  readonly #engine: Engine;
  readonly #rules: DefinedKindRules;
  /** Which state of each definition is served: the registry is left alone while it stays the same. */
  readonly #served = new Map<string, string>();
  /** Reconciling is a read and a write: one at a time, or a later state could be overwritten by an earlier one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(engine: Engine, rules: DefinedKindRules) {
    this.#engine = engine;
    this.#rules = rules;
  }

  async load(): Promise<void> {
    const { entries } = await this.#engine.store.range({ prefix: definitionKeyPrefix });
    for (const entry of entries) {
      const definition = asDefinition(parseStored(definitionKind(this.#engine), entry));
      if (isEstablished(definition)) this.#serve(definition);
    }
  }

  reconcile(name: string): Promise<{ requeueAfterMs: number } | undefined> {
    const next = this.#last.then(() => this.#reconcile(name));
    this.#last = next.catch(() => {});
    return next;
  }

  async #reconcile(name: string): Promise<{ requeueAfterMs: number } | undefined> {
    const served = definitionKind(this.#engine);
    const entry = await this.#engine.store.get(definitionKeyPrefix + name);
    if (entry === undefined) return this.#retire(name);
    const step = stepsOf(this.#engine, entry.latin1.length);
    await step();
    const definition = asDefinition(parseStored(served, entry));
    await step();
    if (definition.metadata.deletionTimestamp !== undefined)
      return this.#empty(definition, { served, namespace: '', name });
    await this.#accept(definition, { served, namespace: '', name });
    return undefined;
  }

  async #retire(name: string): Promise<undefined> {
    if (!this.#served.delete(name)) return undefined;
    const { registry } = this.#engine;
    // A create that was under way when the emptying began may have come in behind it.
    await this.#removeInstances(name);
    registry.remove(name);
    // Its names are free now: definitions that were refused them may have them.
    const { entries } = await this.#engine.store.range({ prefix: definitionKeyPrefix });
    const others = entries.map((entry) => entry.key.slice(definitionKeyPrefix.length));
    for (const other of others) if (!this.#served.has(other)) await this.#reconcile(other);
    return undefined;
  }

  async #accept(definition: CustomResourceDefinition, place: Place): Promise<void> {
    const { registry, world } = this.#engine;
    const others = registry.kindsExcept(place.name);
    const now = formatTime(world.clock.wallMs());
    const status = acceptDefinition(definition, others, now);
    const accepted = { ...definition, status };
    // Served first, said second: who reads Established may rely on it.
    if (isEstablished(accepted)) this.#serve(accepted);
    const isHeld = definition.metadata.finalizers?.includes(cleanupFinalizer);
    if (isHeld && isSameJson(definition.status, status)) return;
    await this.#write(place, (current) => {
      current['status'] = acceptDefinition(asDefinition(current), others, now);
      if (current.metadata.deletionTimestamp !== undefined) return;
      current.metadata.finalizers = [...new Set([...(current.metadata.finalizers ?? []), cleanupFinalizer])];
    });
  }

  #serve(definition: CustomResourceDefinition): void {
    const { name, uid, generation } = definition.metadata;
    const { registry } = this.#engine;
    // Every change of the spec is a new generation.
    const state = JSON.stringify([uid, generation, definition.status?.acceptedNames]);
    if (this.#served.get(name) === state) return;
    const kind = kindsFromDefinition(definition, this.#rules);
    // Regardless of the status: two kinds in one place would be two sets of rules for the same objects.
    if (isPlaceTaken(kind, registry.kindsExcept(name))) {
      if (this.#served.delete(name)) registry.remove(name);
      return;
    }
    this.#served.set(name, state);
    registry.set(name, [kind]);
  }

  async #empty(definition: CustomResourceDefinition, place: Place): Promise<{ requeueAfterMs: number } | undefined> {
    const { registry } = this.#engine;
    if (!definition.metadata.finalizers?.includes(cleanupFinalizer)) return undefined;
    registry.setTerminating(place.name);
    if ((await this.#removeInstances(place.name)) > 0) return { requeueAfterMs: retryMs };
    await this.#write(place, ({ metadata }) => {
      metadata.finalizers = metadata.finalizers?.filter((finalizer) => finalizer !== cleanupFinalizer);
    });
    return undefined;
  }

  /** How many are still there, held by their finalizers. */
  async #removeInstances(name: string): Promise<number> {
    const { registry } = this.#engine;
    let held = 0;
    for (const { group, plural } of registry.kindsOf(name)) {
      const instances = registry.findPlural(group, plural);
      if (instances !== undefined) held += await removeAllBelow(this.#engine, instances, instances.keyPrefix);
    }
    return held;
  }

  async #write(place: Place, change: (definition: AnyObject) => void): Promise<void> {
    try {
      await modify(this.#engine, systemCall(this.#engine, place), {
        part: 'all',
        next: (current) => {
          change(current);
          return current;
        },
      });
    } catch (error) {
      if (!(error instanceof StatusError && error.reason === 'NotFound')) throw error;
    }
  }
}

function asDefinition(object: AnyObject): CustomResourceDefinition {
  return object as unknown as CustomResourceDefinition;
}

async function ensureDefinition(engine: Engine, definition: AnyObject): Promise<void> {
  const { name } = definition.metadata;
  const served = definitionKind(engine);
  if (await isAsWanted(engine, served, definition)) return;
  try {
    await create(engine, systemCall(engine, { served, namespace: '', name: '' }, definition));
  } catch (error) {
    if (!(error instanceof StatusError && error.reason === 'AlreadyExists')) throw error;
    await modify(engine, systemCall(engine, { served, namespace: '', name }), {
      part: 'main',
      next: (current) => {
        const labels = { ...current.metadata.labels, ...definition.metadata.labels };
        const annotations = { ...current.metadata.annotations, ...definition.metadata.annotations };
        if (Object.keys(labels).length > 0) current.metadata.labels = labels;
        if (Object.keys(annotations).length > 0) current.metadata.annotations = annotations;
        return { ...current, spec: structuredClone(definition['spec']) };
      },
    });
  }
}

/** At nearly every start all of them are: then there is nothing to validate or write. */
async function isAsWanted(engine: Engine, served: Served, definition: AnyObject): Promise<boolean> {
  const { name, labels, annotations } = definition.metadata;
  const entry = await engine.store.get(definitionKeyPrefix + name);
  if (entry === undefined) return false;
  const current = parseStored(served, entry);
  const wanted = structuredClone(definition);
  applyDefaults(served, wanted);
  return (
    isSameJson(current['spec'], wanted['spec']) &&
    includes(current.metadata.labels, labels) &&
    includes(current.metadata.annotations, annotations)
  );
}

function includes(all: Readonly<Record<string, string>> = {}, some: Readonly<Record<string, string>> = {}): boolean {
  return Object.entries(some).every(([key, value]) => all[key] === value);
}
