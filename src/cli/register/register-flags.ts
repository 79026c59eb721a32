// The flags of `register` and `deregister` as values. Every error names the flag, what was found and what to write.

import { parseIp } from '../../base/net/ip.ts';
import { checkDefaults, type HealthCheck, parseProbe } from '../../endpoints/health-check.ts';
import type { Protocol } from '../../kube/objects/service.ts';
import { usageError } from '../exit-codes.ts';

/** One `--port [NAME=][SERVICE-PORT:]PORT[/PROTOCOL]`. */
export interface PortFlag {
  readonly name: string;
  readonly protocol: Protocol;
  /** Where the process listens. */
  readonly port: number;
  /** Port of the Service, if one is created; the same number by default. */
  readonly servicePort: number;
}

const portPattern = /^(?:([a-z0-9-]+)=)?(?:(\d{1,5}):)?(\d{1,5})(?:\/(tcp|udp|sctp))?$/i;

function parsePort(text: string): PortFlag {
  const match = portPattern.exec(text);
  if (match === null) {
    throw usageError(
      `--port ${JSON.stringify(text)}: write a number, such as 8080, http=8080, http=80:8080 or dns=53/udp`,
    );
  }
  const [, name = '', servicePort, port, protocol = 'TCP'] = match;
  return {
    name,
    protocol: protocol.toUpperCase() as Protocol,
    port: checkedPort(Number(port), text),
    servicePort: checkedPort(Number(servicePort ?? port), text),
  };
}

function checkedPort(port: number, text: string): number {
  if (port < 1 || port > 65535) throw usageError(`--port ${JSON.stringify(text)}: a port is from 1 to 65535`);
  return port;
}

export function parsePorts(texts: readonly string[]): PortFlag[] {
  const ports = texts.map(parsePort);
  const names = new Set<string>();
  for (const { name } of ports) {
    if (ports.length > 1 && name === '')
      throw usageError('--port: with several ports each needs a name, such as http=8080');
    if (names.has(name)) throw usageError(`--port: two ports are named ${JSON.stringify(name)}; rename one`);
    names.add(name);
  }
  return ports;
}

export function parseAddress(text: string, flag = '--address'): string {
  if (parseIp(text) === undefined) {
    throw usageError(
      `${flag} ${JSON.stringify(text)}: not an IP address; names are not looked up, give the address itself`,
    );
  }
  return text;
}

export interface CheckFlags {
  readonly check?: string;
  readonly interval?: string;
  readonly checkTimeout?: string;
  readonly rise?: string;
  readonly fall?: string;
}

export function parseCheck(flags: CheckFlags, firstPort: number): HealthCheck | undefined {
  if (flags.check === undefined) {
    const strays = {
      '--interval': flags.interval,
      '--check-timeout': flags.checkTimeout,
      '--rise': flags.rise,
      '--fall': flags.fall,
    };
    const stray = Object.entries(strays).find(([, value]) => value !== undefined);
    if (stray !== undefined) throw usageError(`${stray[0]}: needs --check`);
    return undefined;
  }
  const intervalMs = parseDuration('--interval', flags.interval) ?? checkDefaults.intervalMs;
  const timeoutMs =
    parseDuration('--check-timeout', flags.checkTimeout) ?? Math.min(checkDefaults.timeoutMs, intervalMs);
  return {
    probe: readProbe(flags.check, firstPort),
    intervalMs,
    timeoutMs,
    rise: parseCount('--rise', flags.rise) ?? checkDefaults.rise,
    fall: parseCount('--fall', flags.fall) ?? checkDefaults.fall,
  };
}

function readProbe(text: string, firstPort: number): HealthCheck['probe'] {
  try {
    return parseProbe(text, firstPort);
  } catch (cause) {
    throw usageError((cause as Error).message, { cause });
  }
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

function parseDuration(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text);
  const durationMs = match === null ? 0 : Number(match[1]) * unitMs[match[2]!]!;
  if (durationMs < 200 || durationMs > 3_600_000) {
    throw usageError(`${flag} ${JSON.stringify(text)}: write a time from 200ms to 60m, such as 5s`);
  }
  return durationMs;
}

function parseCount(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d?$/.test(text)) throw usageError(`${flag} ${JSON.stringify(text)}: write a number from 1 to 99`);
  return Number(text);
}
