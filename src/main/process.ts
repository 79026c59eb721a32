// Shared by all long-running roles: log, signals and exit.

import { hostname } from 'node:os';
import { relative, resolve } from 'node:path';
import { Backoff } from '../base/backoff.ts';
import { createLog, errorText, type Log, type LogLevel } from '../base/log.ts';
import { Parts } from '../base/parts.ts';
import { ConnectionError } from '../base/real/connection-error.ts';
import { createRealWorld } from '../base/real/world.ts';
import { sleep, type World } from '../base/world.ts';
import { ApiError } from '../kube/objects/api-error.ts';
import { stopTelemetry, withTelemetry } from './telemetry.ts';

export function processLog(world: World, level: LogLevel): Log {
  return createLog({ clock: world.clock, level, write: (line) => process.stderr.write(line) });
}

/** What every role begins with. */
export async function openRole(role: string, level: LogLevel): Promise<{ readonly world: World; readonly log: Log }> {
  const real = createRealWorld();
  const log = processLog(real, level);
  return { log, world: await withTelemetry(role, real, log) };
}

/** The node that this process runs on: in a Pod the hostname is that of the Pod. */
export function nodeName(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  return environment['NODE_NAME'] || hostname();
}

const homeRetry = { firstMs: 500, delayMsMax: 5000 };

/** Asks again while the home is away: a part that is started before its home waits for it. A refusal is an error. */
export async function whenHomeAnswers<T>(
  { world, log }: { readonly world: Pick<World, 'timers' | 'random'>; readonly log: Log },
  ask: () => Promise<T>,
): Promise<T> {
  const backoff = new Backoff(world.random, homeRetry);
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isAway(error)) throw error;
      log.warn('the home does not answer: waiting for it', { error: errorText(error) });
      await sleep(world.timers, backoff.nextMs());
    }
  }
}

const awayCodes = new Set(
  'ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH ETIMEDOUT ECONNRESET EPIPE'.split(' '),
);

function isAway(error: unknown): boolean {
  if (error instanceof ApiError) return error.code >= 500 || error.code === 429;
  if (error instanceof ConnectionError) return awayCodes.has(error.code);
  return error instanceof Error && error.message.includes('no answer within');
}

// One Ctrl-C reaches us twice under npm: from the terminal, and from the script that passes it on.
const sameKeyPressMs = 500;

/**
 * Resolves when the process was asked to stop and has stopped. A second signal ends it at once. Call it before
 * printing `ready`: a signal may follow the next moment.
 */
export function untilStopped(log: Log, stop: (signal: NodeJS.Signals) => Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    let stoppingSinceMs: number | undefined;
    const onSignal = (signal: NodeJS.Signals) => {
      const nowMs = performance.now();
      if (stoppingSinceMs !== undefined && nowMs - stoppingSinceMs > sameKeyPressMs) process.exit(1);
      if (stoppingSinceMs !== undefined) return;
      stoppingSinceMs = nowMs;
      log.info('stopping', { signal });
      stop(signal)
        .finally(stopTelemetry)
        .then(resolve, (error) => {
          log.error('stopping failed', { error: errorText(error) });
          process.exitCode = 1;
          resolve();
        });
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}

/** As a person would type it from where they are. The program runs compiled, in dist/src. */
export function portolanPath(): string {
  const path = resolve(import.meta.dirname, '../../../bin/portolan');
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith('..') ? path : fromHere;
}

/** Runs a role. If it fails, what was started is stopped, so that the process ends. */
export async function withParts(log: Log, run: (parts: Parts) => Promise<void>): Promise<void> {
  const parts = new Parts(log);
  try {
    await run(parts);
  } catch (error) {
    await parts.stop();
    throw error;
  }
}
