// The queues of an agent's controllers by name. Made before everything that puts keys into them, so that nothing has to be
// bound later; a key for a controller that does not run yet is dropped, because it looks at everything when it starts.

import type { Controller } from '../../kube/controller/loop.ts';

export type ControllerName =
  | 'export'
  | 'conditions'
  | 'import'
  | 'merged-view'
  | 'identity'
  | 'policy'
  | 'policy-status'
  | 'import-policy-status'
  | 'access-policy'
  | 'shift'
  | 'placement'
  | 'placement-status'
  | 'inventory'
  | 'legacy';

export class ControllerQueues {
  readonly #running = new Map<ControllerName, Controller>();
  readonly #expand = new Map<ControllerName, (key: string) => readonly string[]>();

  run(name: ControllerName, controller: Controller): void {
    this.#running.set(name, controller);
  }

  /** Keys that are added for a key, itself included. */
  expand(name: ControllerName, keysOf: (key: string) => readonly string[]): void {
    this.#expand.set(name, keysOf);
  }

  add(names: readonly ControllerName[], keys: Iterable<string>): void {
    const running = names.flatMap((name) => {
      const queue = this.#running.get(name)?.queue;
      return queue === undefined ? [] : [{ queue, keysOf: this.#expand.get(name) }];
    });
    if (running.length === 0) return;
    for (const key of keys)
      for (const { queue, keysOf } of running)
        if (keysOf === undefined) queue.add(key);
        else for (const one of keysOf(key)) queue.add(one);
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
