import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConnectionError } from '../base/real/connection-error.ts';
import { requireMembership } from '../clusterset/explain/consult.ts';
import type { Client } from '../kube/client/client.ts';
import { StoppedAnswering } from '../kube/client/while-answering.ts';
import { ApiError } from '../kube/objects/api-error.ts';
import { describeError, exitKindOf, usageError } from './exit-codes.ts';

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), {
  code: 'ECONNREFUSED',
  syscall: 'connect',
});
const api = (code: number, message: string) =>
  new ApiError(`GET /api/v1/pods?limit=5: ${message}`, { code, reason: '' });

test.each([
  ['a flag that is wrong', usageError('--minutes x: write a number'), 'usage', '--minutes x: write a number'],
  ['no such object', api(404, 'pods "a" not found'), 'notFound', 'pods "a" not found'],
  ['no right', new Error('export shop/a', { cause: api(403, 'forbidden') }), 'refused', 'export shop/a: forbidden'],
  ['a home that is down', api(503, 'starting'), 'unreachable', 'starting'],
  ['a home that hangs', new StoppedAnswering('it stopped answering'), 'unreachable', 'it stopped answering'],
  [
    'nothing listens',
    new ConnectionError('connect to https://127.0.0.1:1', refused),
    'unreachable',
    'connect to https://127.0.0.1:1: nothing listens there; is the server running, and is the port right?',
  ],
  ['a cause that is part of the message', new Error('a: b', { cause: new Error('b') }), 'failed', 'a: b'],
  [
    'a port that is taken',
    new Error('admin', {
      cause: Object.assign(new Error('listen EADDRINUSE'), {
        syscall: 'listen',
        code: 'EADDRINUSE',
        address: '127.0.0.1',
        port: 53,
      }),
    }),
    'failed',
    'cannot listen on 127.0.0.1:53: another process has this port; stop it, or give another one (port 0 takes a free one)',
  ],
  [
    'a unix socket that is taken',
    new Error('another proxy runs here', {
      cause: Object.assign(new Error('listen EADDRINUSE'), {
        code: 'EADDRINUSE',
        syscall: 'listen',
        address: '\0x',
        port: -1,
      }),
    }),
    'failed',
    'another proxy runs here',
  ],
  ['something else', 'odd', 'failed', 'odd'],
] as const)('exit codes: %s -> %s', (_what, error, kind, text) => {
  expect(exitKindOf(error)).toBe(kind);
  expect(describeError(error)).toBe(text);
});

test('exit codes: a cluster that is no member -> not found', async () => {
  const home = { get: () => Promise.reject(api(404, 'secrets "portolan-membership" not found')) } as unknown as Client;
  const error = await requireMembership(home).catch((caught: unknown) => caught);
  expect(exitKindOf(error)).toBe('notFound');
  expect(describeError(error)).toBe('this cluster is not a member of a clusterset; run portolan join TOKEN');
});

test('exit codes: every error about an option -> usage', () => {
  const names = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  const plain = files.filter((name) =>
    /new Error\(\s*['`]--/.test(readFileSync(join(import.meta.dirname, name), 'utf8')),
  );
  expect(plain).toEqual([]);
});
