// Structured log lines: one JSON object a line, a fixed text and fields. Where they go is the caller's choice.

import { printable } from './text/printable.ts';
import type { Clock } from './world.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(text: string, fields?: LogFields): void;
  info(text: string, fields?: LogFields): void;
  warn(text: string, fields?: LogFields): void;
  error(text: string, fields?: LogFields): void;
  with(fields: LogFields): Log;
}

export interface LogOptions {
  readonly clock: Clock;
  readonly level: LogLevel;
  readonly write: (line: string) => void;
  readonly fields?: LogFields;
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export function createLog(options: LogOptions): Log {
  const threshold = levels.indexOf(options.level);
  const emit = (level: LogLevel, text: string, fields?: LogFields) => {
    if (levels.indexOf(level) < threshold) return;
    const time = new Date(options.clock.wallMs()).toISOString();
    options.write(
      `${printable(JSON.stringify({ time, level, msg: text, ...options.fields, ...fields }, plainErrors))}\n`,
    );
  };
  return {
    debug: (text, fields) => emit('debug', text, fields),
    info: (text, fields) => emit('info', text, fields),
    warn: (text, fields) => emit('warn', text, fields),
    error: (text, fields) => emit('error', text, fields),
    with: (fields) => createLog({ ...options, fields: { ...options.fields, ...fields } }),
  };
}

export const silentLog: Log = createLog({
  clock: { wallMs: () => 0, monotonicMs: () => 0 },
  level: 'error',
  write: () => {},
});

function plainErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  return value.cause ? `${value.message}: ${errorText(value.cause)}` : value.message;
}

/** The message of an error and of what caused it, on one line. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${errorText(error.cause)}`;
}
