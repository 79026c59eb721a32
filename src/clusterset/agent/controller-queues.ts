// The queues of an agent's controllers by name. Made before everything that puts keys into them, so that nothing has to be
// bound later; a key for a controller that does not run yet is dropped, because it looks at everything when it starts.

import type { Controller } from '../../kube/controller/loop.ts';

export type ControllerName =
  | 'export'
  | 'conditions'
  | 'import'
  | 'scribe'
  | 'identity'
  | 'policy'
  | 'policy-status'
  | 'import-policy-status'
  | 'shift'
  | 'placement'
  | 'placement-status'
  | 'legacy';

export class ControllerQueues {
  readonly #running = new Map<ControllerName, Controller>();

  run(name: ControllerName, controller: Controller): void {
    this.#running.set(name, controller);
  }

  add(names: readonly ControllerName[], keys: Iterable<string>): void {
    const queues = names.flatMap((name) => this.#running.get(name)?.queue ?? []);
    if (queues.length > 0) for (const key of keys) for (const queue of queues) queue.add(key);
  }

  /** Resolves when nothing is left to do for that controller. */
  async whenIdle(name: ControllerName): Promise<void> {
    await this.#running.get(name)?.queue.whenIdle();
  }

  /** Resolves when reconciles under way have ended. */
  async stop(): Promise<void> {
    await Promise.all(Array.from(this.#running.values(), (controller) => controller.stop()));
  }
}
