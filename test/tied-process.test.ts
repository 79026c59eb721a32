import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';

/** Whether the process is there, and no zombie. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('tied process: the one that started it is killed -> it ends too', async () => {
  const module = new URL('./support/tied-process.ts', import.meta.url).href;
  const text = `import { spawnTied } from '${module}'; console.log(spawnTied('sleep', ['120']).pid); setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(parent.stdout, 'data');
  const pid = Number(String(line));
  try {
    for (let i = 0; i < 100 && !/^sleep/.test(readFileSync(`/proc/${pid}/comm`, 'utf8')); i++) await pause(20);
    expect(isRunning(pid)).toBe(true);
    parent.kill('SIGKILL');
    for (let i = 0; i < 500 && isRunning(pid); i++) await pause(20);
    expect(isRunning(pid)).toBe(false);
  } finally {
    if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  }
});
