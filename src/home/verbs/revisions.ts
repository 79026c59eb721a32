// Waiting for the store to reach a revision that a client has seen elsewhere, or made up.

import type { Engine } from '../model/call.ts';
import { resourceVersionTooLarge } from '../model/status-errors.ts';

/** Throws StatusError Timeout, cause ResourceVersionTooLarge, if it does not get there soon. */
export async function waitForRevision(engine: Engine, revision: number): Promise<void> {
  const { store, world, limits } = engine;
  if (store.revision() >= revision) return;
  await new Promise<void>((resolve) => {
    const finish = () => {
      timer.cancel();
      watch.cancel();
      resolve();
    };
    const timer = world.timers.after(limits.futureRevisionMs, finish);
    const watch = store.watch({
      // No key begins like this: it is the progress that counts.
      prefix: '\0',
      afterRevision: store.revision(),
      onEvents: () => {},
      onProgress: (reached) => {
        if (reached >= revision) finish();
      },
      onEnd: finish,
    });
  });
  if (store.revision() < revision) throw resourceVersionTooLarge(revision, store.revision());
}
