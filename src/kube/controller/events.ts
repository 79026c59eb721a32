// Writes Kubernetes Events: what happened to one object, for people. Losing one harms nothing, so a failed write is only
// logged. Callers speak when something has changed, never because they were started. An object that keeps changing gets a few
// Events in a while: homes keep each for an hour, in memory too.

import { BoundedCache } from '../../base/bounded-cache.ts';
import type { Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../client/client.ts';
import { isNamespaceEnding } from '../objects/api-error.ts';
import { formatTime } from '../objects/conditions.ts';
import { eventType, type KubernetesEvent } from '../objects/event.ts';
import type { KubernetesObject } from '../objects/object.ts';

interface Happening {
  readonly about: KubernetesObject;
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, one word for machines. */
  readonly reason: string;
  readonly message: string;
}

export interface EventRecorder {
  record(happening: Happening): Promise<void>;
}

const messageLengthMax = 1024;
/** For one object, by its name: one that is deleted and made again is the same to a person. */
const eventsOfOne = { linesMax: 10, perMs: 600_000 };
const objectsMax = 10_000;
/** For all objects together: at most 30,000 Events in the hour that a home keeps them, some 20 MB. */
const eventsOfAll = { linesMax: 5_000, perMs: 600_000 };

export function createEventRecorder(options: {
  readonly home: Client;
  readonly world: Pick<World, 'clock' | 'random'>;
  readonly log: Log;
}): EventRecorder {
  const { home, world, log } = options;
  const budgets = new BoundedCache<LogBudget>(objectsMax);
  const budgetOfAll = new LogBudget(world.clock, eventsOfAll);

  function budgetOf({ kind, metadata }: KubernetesObject): LogBudget {
    const key = `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
    const budget = budgets.get(key) ?? new LogBudget(world.clock, eventsOfOne);
    budgets.set(key, budget);
    return budget;
  }

  return {
    record: async (happening) => {
      const room = budgetOf(happening.about).take();
      if (room === undefined) return;
      const roomOfAll = budgetOfAll.take();
      if (roomOfAll === undefined) return;
      if (roomOfAll.notLogged !== undefined)
        log.warn('too many Events: some were left out', { count: roomOfAll.notLogged });
      const leftOut = room.notLogged === undefined ? '' : ` (after ${room.notLogged} Events that were left out)`;
      const event = eventOf(
        { ...happening, message: `${happening.message.slice(0, messageLengthMax - leftOut.length)}${leftOut}` },
        formatTime(world.clock.wallMs()),
        Buffer.from(world.random.bytes(8)).toString('hex'),
      );
      try {
        await home.create(eventType, event);
      } catch (error) {
        // Events about objects that go with their namespace have no reader.
        if (isNamespaceEnding(error)) return;
        log.warn('event not written', { reason: happening.reason, about: event.involvedObject, error });
      }
    },
  };
}

function eventOf({ about, type, reason, message }: Happening, now: string, id: string): KubernetesEvent {
  const { name, namespace, uid, resourceVersion } = about.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    // Events about cluster-scoped objects go to `default`, as everywhere.
    metadata: { name: `${name.slice(0, 200)}.${id}`, namespace: namespace ?? 'default' },
    type,
    reason,
    message,
    involvedObject: { apiVersion: about.apiVersion, kind: about.kind, name, namespace, uid, resourceVersion },
    source: { component: 'portolan-agent' },
    reportingComponent: 'portolan.dev/agent',
    count: 1,
    firstTimestamp: now,
    lastTimestamp: now,
  };
}
