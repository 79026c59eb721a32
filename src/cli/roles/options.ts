// The options that several roles share, and how their texts are read.

import { Option } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { type HostPort, parseHostPort } from '../../base/text/host-port.ts';
import { usageError } from '../exit-codes.ts';

/** The host is explicit: 0.0.0.0 or [::] for all addresses. */
export function parseListen(text: string, flag = '--listen'): HostPort {
  const address = parseHostPort(text);
  if (address === undefined) {
    throw usageError(`${flag} ${text}: expected HOST:PORT, such as 127.0.0.1:6443, [::1]:6443 or 0.0.0.0:0`);
  }
  return address;
}

/** `--log-level`, which every role has. */
export function logLevelOption(level: LogLevel): Option {
  return new Option('--log-level <level>', 'how much to say on standard error').choices(logLevels).default(level);
}

const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
