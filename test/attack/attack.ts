// What an attack is, and the processes that several of them need.

import { type ApiProcess, type Connection, connect, startApi } from '../support/api-process.ts';

export interface Scene {
  /** Removed afterwards. */
  readonly folder: string;
  onClose(close: () => unknown): void;
}

interface Outcome {
  readonly isHeld: boolean;
  /** In figures where there are any. */
  readonly outcome: string;
}

export interface Attack {
  readonly attempt: string;
  run(scene: Scene): Promise<Outcome>;
}

export interface Victim {
  readonly api: ApiProcess;
  readonly admin: Connection;
}

export async function startVictim(
  scene: Scene,
  options: { readonly args?: readonly string[]; readonly under?: readonly string[]; readonly name?: string } = {},
): Promise<Victim> {
  const { args = [], under, name = 'home' } = options;
  const api = await startApi({ data: `${scene.folder}/${name}`, args: ['--log-level', 'error', ...args], under });
  scene.onClose(() => api.stop('SIGKILL'));
  const admin = await connect(api.kubeconfig);
  scene.onClose(() => admin.close());
  return { api, admin };
}

/** Asks again and again; the longest wait for an answer, in milliseconds. */
export function watchLatency(ask: () => Promise<unknown>): () => Promise<number> {
  let longestMs = 0;
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      const startMs = performance.now();
      await ask();
      longestMs = Math.max(longestMs, performance.now() - startMs);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return async () => {
    isOver = true;
    await running;
    return Math.round(longestMs);
  };
}
