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
  return value instanceof Error ? errorText(value) : value;
}

/** The message of an error and of what caused it, on one line. Never empty: a reason is always given. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error) || 'unknown error';
  const { cause } = error;
  if (error.message === '') return cause === undefined ? withoutMessage(error) : errorText(cause);
  return cause === undefined ? error.message : `${error.message}: ${errorText(cause)}`;
}

/** Connecting to a name with several addresses fails with an error that has no message, only one error for each address. */
function withoutMessage(error: Error): string {
  const causes = error instanceof AggregateError ? error.errors.slice(0, causesMax).map(errorText) : [];
  const { code } = error as { code?: unknown };
  return [...new Set(causes)].join('; ') || String(code ?? error.name) || 'unknown error';
}

const causesMax = 4;
