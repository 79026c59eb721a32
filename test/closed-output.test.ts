import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));

test('command line: whoever reads the output has read enough -> no stack trace, and the command ends', async () => {
  const script = '{ "$0" "$1" broker init --print; echo "ended with $?" >&2; } | { exec 0<&-; sleep 5; }';
  const { stderr } = await promisify(execFile)('sh', ['-c', script, process.execPath, main], { timeout: 60_000 });
  expect(stderr.trim()).toBe('ended with 0');
}, 70_000);
