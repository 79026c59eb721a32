// Asks the process under test how long its event loop was held while a request was answered.

import { connect as connectSocket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Probe {
  ask<T>(question: 'reset' | 'read' | 'work'): Promise<T>;
  close(): void;
}

export interface Measured {
  /** The longest time that the event loop was held, by the clock. */
  readonly delayMs: number;
  /** Processor time of the longest turn of the event loop: what the delay is on an idle machine. */
  readonly turnMs: number;
  readonly cpuMs: number;
  /** Processor time of the fixed work: what kind of machine this is. */
  readonly workMs: number;
}

export async function openProbe(path: string): Promise<Probe> {
  const socket = connectSocket(path);
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  return {
    ask: async (question) => {
      socket.write(`${question}\n`);
      return JSON.parse((await lines.next()).value as string);
    },
    close: () => socket.destroy(),
  };
}

/** Work that the request leaves for shortly afterwards counts as well. */
const afterglowMs = 100;

export async function measure(probe: Probe, act: () => Promise<void>): Promise<Measured> {
  const { workMs } = await probe.ask<{ workMs: number }>('work');
  await sleep(10);
  await probe.ask('reset');
  await act();
  await sleep(afterglowMs);
  return { workMs, ...(await probe.ask<Omit<Measured, 'workMs'>>('read')) };
}
