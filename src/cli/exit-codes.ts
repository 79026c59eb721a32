// How a command ends: one exit code per kind of failure, and one line that says what failed and what to do next.

import { formatHostPort } from '../base/net/host-port.ts';
import { ConnectionError } from '../base/real/connection-error.ts';
import { ApiError } from '../kube/objects/api-error.ts';

export const exitCodes = {
  failed: 1,
  usage: 2,
  notFound: 4,
  refused: 5,
  unreachable: 6,
  /** Something is not ready, or a check found something. */
  notReady: 7,
  /** The answer is there, but part of it could not be read. */
  incomplete: 8,
  wouldConflict: 9,
} as const;

export type ExitKind = keyof typeof exitCodes;

/** An error whose kind the command itself knows. */
export class CommandError extends Error {
  readonly kind: ExitKind;

  constructor(kind: ExitKind, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'CommandError';
    this.kind = kind;
  }
}

export function usageError(message: string, options?: { readonly cause?: unknown }): CommandError {
  return new CommandError('usage', message, options);
}

export function notFoundError(message: string): CommandError {
  return new CommandError('notFound', message);
}

/** The broker, the home or another writer has something that does not allow it. */
export function refusedError(message: string): CommandError {
  return new CommandError('refused', message);
}

export function unreachableError(message: string): CommandError {
  return new CommandError('unreachable', message);
}

/** By name: the code that throws them is loaded only by commands that use it. */
const kindsByName: ReadonlyMap<string, ExitKind> = new Map([
  ['KubeconfigError', 'usage'],
  ['NoClusterSet', 'notFound'],
  ['NotMember', 'notFound'],
  ['NoAnswer', 'unreachable'],
  ['StoppedAnswering', 'unreachable'],
]);

/** The kind of the error, or else of what caused it. */
export function exitKindOf(error: unknown): ExitKind {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof CommandError) return one.kind;
    const known = kindsByName.get(one.name);
    if (known !== undefined) return known;
    if (one instanceof ConnectionError) return 'unreachable';
    if (one instanceof ApiError) return kindOfStatus(one.code);
  }
  return 'failed';
}

function kindOfStatus(code: number): ExitKind {
  if (code === 404) return 'notFound';
  return code < 500 ? 'refused' : 'unreachable';
}

interface ListenError {
  readonly syscall?: string;
  readonly code?: string;
  readonly address?: string;
  readonly port?: number;
}

/** A port that cannot be had is the usual mistake, and the system's own words name no next step. */
function listenProblem(error: unknown): string | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { syscall, code, address = '', port } = one as ListenError;
    // Sockets of the file system have no port, and their owners have words of their own.
    if ((syscall !== 'listen' && syscall !== 'bind') || typeof port !== 'number' || port < 0) continue;
    const where = port === 0 ? address : formatHostPort(address, port);
    if (code === 'EADDRINUSE')
      return `cannot listen on ${where}: another process has this port; stop it, or give another one (port 0 takes a free one)`;
    if (code === 'EACCES') return `cannot listen on ${where}: ports below 1024 need root or CAP_NET_BIND_SERVICE`;
    if (code === 'EADDRNOTAVAIL') return `cannot listen on ${where}: this machine does not have that address`;
  }
  return undefined;
}

const rawRequest = /\b(GET|POST|PUT|PATCH|DELETE) \/\S*: /g;

/** The message of an error and of its causes. Requests and system calls are left out, and no cause is printed twice. */
export function describeError(error: unknown): string {
  const listening = listenProblem(error);
  if (listening !== undefined) return listening;
  let text = '';
  for (let one: unknown = error; one !== undefined; one = one instanceof Error ? one.cause : undefined) {
    const message = (one instanceof Error ? one.message : String(one)).replace(rawRequest, '');
    const isSystemCall = (one as { syscall?: unknown }).syscall !== undefined;
    if (text === '') text = message;
    else if (!isSystemCall && message !== '' && !text.includes(message)) text += `: ${message}`;
  }
  return text;
}
