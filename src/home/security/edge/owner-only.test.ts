import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLog } from '../../../base/log.ts';
import { createRealWorld } from '../../../base/real/world.ts';
import { closeToOthers } from './owner-only.ts';

let directory: string;
const lines: string[] = [];
const log = createLog({ level: 'warn', clock: createRealWorld().clock, write: (line) => void lines.push(line) });
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portolan-owner-'));
  lines.length = 0;
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const modeOf = (...path: string[]) => (statSync(join(directory, ...path)).mode & 0o777).toString(8);

test('owner only: keys of mode 0644 in folders of 0755 -> closed to others, each with a warning; certificates stay', () => {
  chmodSync(directory, 0o755);
  mkdirSync(join(directory, 'pki'), { mode: 0o755 });
  mkdirSync(join(directory, 'store'), { mode: 0o755 });
  for (const name of ['pki/ca.key', 'pki/ca.crt', 'admin.kubeconfig', 'store/facts.db'])
    writeFileSync(join(directory, name), '', { mode: 0o644 });
  closeToOthers(directory, log);
  expect([modeOf(), modeOf('pki'), modeOf('store')]).toEqual(['700', '700', '700']);
  expect([modeOf('pki/ca.key'), modeOf('admin.kubeconfig'), modeOf('store/facts.db')]).toEqual(['600', '600', '600']);
  expect(modeOf('pki/ca.crt')).toBe('644');
  expect(lines).toHaveLength(6);
  closeToOthers(directory, log);
  expect(lines).toHaveLength(6);
});

test('owner only: a link to a file elsewhere, or no folder at all -> left alone', () => {
  const elsewhere = join(directory, 'elsewhere.pem');
  writeFileSync(elsewhere, '', { mode: 0o644 });
  mkdirSync(join(directory, 'data', 'pki'), { recursive: true, mode: 0o700 });
  symlinkSync(elsewhere, join(directory, 'data', 'pki', 'ca.key'));
  closeToOthers(join(directory, 'data'), log);
  closeToOthers(join(directory, 'absent'), log);
  expect(modeOf('elsewhere.pem')).toBe('644');
});
