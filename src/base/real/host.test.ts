import { expect, test } from 'vitest';
import { createRealHost } from './host.ts';

const host = createRealHost();
const node = (code: string, options: { environment?: Record<string, string>; timeoutMs?: number } = {}) =>
  host.run({ program: process.execPath, args: ['-e', code], timeoutMs: 20_000, ...options });

test('host: a program that ends -> its code and what it printed, with the environment it was given', async () => {
  const code = 'console.log(process.env.COLOR); console.error("oh"); process.exitCode = 3';
  expect(await node(code, { environment: { COLOR: 'blue' } })).toEqual({
    kind: 'exited',
    code: 3,
    stdout: 'blue\n',
    stderr: 'oh\n',
  });
});

test('host: a program that waits for input -> gets none', async () => {
  expect(await node('process.stdin.on("end", () => console.log("end")).resume()')).toMatchObject({
    code: 0,
    stdout: 'end\n',
  });
});

test('host: a program that never ends -> timed out; one that is not there -> not started', async () => {
  expect(await node('setInterval(() => {}, 1000)', { timeoutMs: 500 })).toEqual({ kind: 'timed out' });
  const missing = await host.run({ program: '/no/such/program', args: [], timeoutMs: 1000 });
  expect(missing).toMatchObject({ kind: 'not started', isMissing: true });
});

test('host: a file that is not there -> undefined', async () => {
  expect(await host.readText('/no/such/file')).toBeUndefined();
});
