import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Simulation } from '../../sim/virtual-world.ts';
import { ConnectionError } from '../base/real/connection-error.ts';
import { readClusterSet } from '../clusterset/explain/broker-state.ts';
import { requireMembership } from '../clusterset/explain/consult.ts';
import { type Client, createClient } from '../kube/client/client.ts';
import { findHome } from '../kube/client/kubeconfig.ts';
import { StoppedAnswering } from '../kube/client/while-answering.ts';
import { ApiError } from '../kube/objects/api-error.ts';
import { describeError, exitCodes, exitKindOf, usageError } from './exit-codes.ts';

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

const simulation = new Simulation({ seed: 1 });
const world = simulation.world('cli');
const emptyHost = {
  environment: {},
  readText: async () => undefined,
  run: async () => ({ kind: 'timed out' as const }),
};
const silent = createClient(
  { send: () => new Promise(() => {}), close: () => {} },
  { world, userAgent: 'test', requestTimeoutMs: 1_000 },
);
const empty = {
  get: () => Promise.reject(api(404, 'not found')),
  list: () => Promise.resolve({ items: [] }),
} as unknown as Client;

test.each([
  ['a kubeconfig that is missing', () => findHome({ host: emptyHost, clock: world.clock, kubeconfig: 'none' }), 2],
  ['no kubeconfig at all', () => findHome({ host: emptyHost, clock: world.clock }), 2],
  ['a clusterset that is not there', () => readClusterSet(empty, 'prod'), 4],
  ['a cluster that is no member', () => requireMembership(empty), 4],
  ['a home that takes the request and never answers', () => simulation.time.settle(silent.getPath('/version')), 6],
] as const)(
  'exit codes: %s -> the number of its kind, also as the cause of another error',
  async (_what, act, code) => {
    const error = await act().then(
      () => undefined,
      (caught: unknown) => caught,
    );
    expect(exitCodes[exitKindOf(error)]).toBe(code);
    expect(exitCodes[exitKindOf(new Error('status', { cause: error }))]).toBe(code);
  },
);

test('exit codes: -> the numbers of the guide, and no other', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/command-line.md'), 'utf8');
  const table = guide.slice(guide.indexOf('## Exit codes'), guide.indexOf('## Output'));
  const documented = [...table.matchAll(/^\| (\d) \| ([a-z]+)/gm)].map(([, code, word]) => `${code} ${word}`);
  expect(documented).toEqual([
    '0 success',
    `${exitCodes.failed} failed`,
    `${exitCodes.usage} usage`,
    `${exitCodes.notFound} not`,
    `${exitCodes.refused} refused`,
    `${exitCodes.unreachable} unreachable`,
    `${exitCodes.notReady} not`,
    `${exitCodes.incomplete} incomplete`,
  ]);
  expect(table).toMatch(new RegExp(`^\\| ${exitCodes.wouldConflict} \\| \`portolan plan\``, 'm'));
});

test('exit codes: every error about an option -> usage', () => {
  const names = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  const plain = files.filter((name) =>
    /new Error\(\s*['`]--/.test(readFileSync(join(import.meta.dirname, name), 'utf8')),
  );
  expect(plain).toEqual([]);
});
