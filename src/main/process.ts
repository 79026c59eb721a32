// What every long-running role of this program has in common: its log, its signals, and how it ends.

import { Option } from 'commander';
import { createLog, errorText, type Log, type LogLevel } from '../base/log.ts';
import type { World } from '../base/world.ts';

export function processLog(world: World, level: LogLevel): Log {
  return createLog({ clock: world.clock, level, write: (line) => process.stderr.write(line) });
}

// One Ctrl-C reaches us twice under npm: from the terminal, and from the script that passes it on.
const sameKeyPressMs = 500;

/**
 * Resolves when the process was asked to stop and has stopped. A second signal ends it at once. Call it before saying
 * `ready`: whoever reads that may send a signal the next moment.
 */
export function untilStopped(log: Log, stop: () => Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    let stoppingSinceMs: number | undefined;
    const onSignal = (signal: NodeJS.Signals) => {
      const nowMs = performance.now();
      if (stoppingSinceMs !== undefined && nowMs - stoppingSinceMs > sameKeyPressMs) process.exit(1);
      if (stoppingSinceMs !== undefined) return;
      stoppingSinceMs = nowMs;
      log.info('stopping', { signal });
      stop().then(resolve, (error) => {
        log.error('stopping failed', { error: errorText(error) });
        process.exitCode = 1;
        resolve();
      });
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}

/** The host is said outright: whoever wants all addresses writes 0.0.0.0 or [::]. */
export function parseListen(text: string, flag = '--listen'): { host: string; port: number } {
  const parts = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(parts?.[3]);
  if (parts === null || port > 65535) {
    throw new Error(`${flag} ${text}: expected HOST:PORT, such as 127.0.0.1:6443, [::1]:6443 or 0.0.0.0:0`);
  }
  return { host: parts[1] ?? parts[2] ?? '', port };
}

/** `--log-level`, which every role has. */
export function logLevelOption(level: LogLevel): Option {
  return new Option('--log-level <level>', 'how much to say on standard error').choices(logLevels).default(level);
}

const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
