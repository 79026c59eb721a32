// The options that several roles share, and how their texts are read.

import { Option } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { type HostPort, parseHostPort } from '../../base/net/host-port.ts';
import { parseWorkload, type Workload } from '../../xds/identity/proxy-identity.ts';
import { usageError } from '../exit-codes.ts';

/** The host is explicit: 0.0.0.0 or [::] for all addresses. */
export function parseListen(text: string, flag = '--listen'): HostPort {
  const address = parseHostPort(text);
  if (address === undefined) {
    throw usageError(`${flag} ${text}: expected HOST:PORT, such as 127.0.0.1:6443, [::1]:6443 or 0.0.0.0:0`);
  }
  return address;
}

/** `--advertise HOST[:PORT]`: how other machines reach this one. Port 0 if none is given. */
export function parseAdvertise(text: string): HostPort {
  const address = parseHostPort(text, 0);
  const isWildcard = address?.host === '0.0.0.0' || address?.host === '::';
  if (address !== undefined && !isWildcard) return address;
  throw usageError(
    `--advertise ${text}: expected the name or address by which other machines reach this one, such as 10.0.0.7 or east.example:6443`,
  );
}

/** Permissions of a socket: for its owner and, at most, its group. */
export function parseMode(text: string, flag: string): number {
  if (/^0?[0-7][0-7]0$/.test(text)) return Number.parseInt(text, 8);
  throw usageError(`${flag} ${text}: expected permissions of owner and group in octal, such as 0660 or 0600`);
}

/** `--log-level`, which every role has. */
export function parseAccount(text: string, flag: string): Workload {
  const account = parseWorkload(text);
  if (account === undefined) throw usageError(`${flag} ${text}: expected NAMESPACE/ACCOUNT, such as shop/checkout`);
  return account;
}

export function logLevelOption(level: LogLevel): Option {
  return new Option('--log-level <level>', 'how much to say on standard error').choices(logLevels).default(level);
}

const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export interface SnapshotFlags {
  /** `none` turns them off. */
  readonly snapshots?: string;
  readonly snapshotKeyFile?: string;
}

/** Flags of the roles that are a home. */
export function snapshotsOption(): Option {
  const description = 'folder of hourly snapshots; "none" takes none (default: snapshots in the data folder)';
  return new Option('--snapshots <dir>', description);
}

export function snapshotKeyOption(): Option {
  return new Option(
    '--snapshot-key-file <file>',
    'file with the key that snapshots are encrypted with (default: none)',
  );
}
