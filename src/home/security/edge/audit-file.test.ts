import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../base/log.ts';
import { auditEvent } from '../audit.ts';
import { openAuditFile } from './audit-file.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portolan-audit-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const event = (name: string) =>
  auditEvent({
    auditId: name,
    stage: 'ResponseComplete',
    method: 'DELETE',
    path: `/api/v1/namespaces/shop/services/${name}`,
    userAgent: 'kubectl',
    sourceAddress: '127.0.0.1',
    status: 200,
    trail: { user: { name: 'bob', groups: ['ops'] }, impersonator: { name: 'ann', groups: ['dev'] } },
    receivedWallMs: 0,
    nowWallMs: 5,
  });
const lines = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('audit', () => {
  test('audit: one request -> who, as whom, what, on which object, from where, how it went', () => {
    expect(event('till')).toEqual({
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: 'till',
      stage: 'ResponseComplete',
      requestURI: '/api/v1/namespaces/shop/services/till',
      verb: 'delete',
      user: { username: 'ann', groups: ['dev'] },
      impersonatedUser: { username: 'bob', groups: ['ops'] },
      sourceIPs: ['127.0.0.1'],
      userAgent: 'kubectl',
      objectRef: { resource: 'services', apiVersion: 'v1', namespace: 'shop', name: 'till' },
      responseStatus: { code: 200 },
      requestReceivedTimestamp: '1970-01-01T00:00:00.000Z',
      stageTimestamp: '1970-01-01T00:00:00.005Z',
    });
  });

  test('audit: a request of 60 KB of path, user agent and groups -> a line of a few kilobytes that says what was cut', () => {
    const long = 'x'.repeat(60_000);
    const made = auditEvent({
      auditId: 'a',
      stage: 'ResponseComplete',
      method: long,
      path: `/api/v1/namespaces/${long}/services/${long}?${long}`,
      userAgent: long,
      sourceAddress: '127.0.0.1',
      status: 403,
      trail: { user: { name: long, uid: long, groups: Array.from({ length: 1000 }, () => long) } },
      receivedWallMs: 0,
      nowWallMs: 0,
    });
    expect(JSON.stringify(made).length).toBeLessThan(10_000);
    expect(made.userAgent).toMatch(/^x{128}… of 60000 characters$/);
    expect(made.user?.groups.at(-1)).toBe('and 984 more');
  });

  test('audit: a file -> a line for each event, in order, readable by its owner alone, kept over a restart', async () => {
    const path = join(directory, 'deep', 'audit.log');
    for (const names of [['a', 'b'], ['c']]) {
      const file = openAuditFile({ path, log: silentLog });
      for (const name of names) file.record(event(name));
      await file.close();
    }
    expect(lines(path).map((line) => line.auditID)).toEqual(['a', 'b', 'c']);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('audit: the file is full -> renamed away, so many old ones kept and no more', async () => {
    const path = join(directory, 'audit.log');
    for (let round = 0; round < 10; round++) {
      const file = openAuditFile({ path, log: silentLog, fileBytesMax: 1000, oldFilesMax: 2 });
      for (let count = 0; count < 3; count++) file.record(event(`e${round}`));
      await file.close();
    }
    expect(readdirSync(directory).sort()).toEqual(['audit.log', 'audit.log.1', 'audit.log.2']);
    expect(lines(`${path}.1`).at(-1)).toMatchObject({ kind: 'Event' });
  });

  test('audit: more events than the disk can follow -> dropped and counted, nobody waits', async () => {
    const path = join(directory, 'audit.log');
    const file = openAuditFile({ path, log: silentLog, waitingBytesMax: 2000 });
    for (let count = 0; count < 100; count++) file.record(event(`e${count}`));
    await file.close();
    const written = lines(path);
    const dropped = written.filter((line) => line.kind === 'Dropped').reduce((sum, line) => sum + line.events, 0);
    expect(dropped).toBeGreaterThan(0);
    expect(dropped + written.filter((line) => line.kind === 'Event').length).toBe(100);
  });

  test('audit: the file cannot be written -> a problem until it can; what waited is written, in order', async () => {
    const path = '/dev/full';
    const file = openAuditFile({ path, log: silentLog, waitingBytesMax: 2000, retryMs: 20 });
    expect(file.problem()).toBeUndefined();
    for (let count = 0; count < 20; count++) file.record(event(`e${count}`));
    await expect.poll(() => file.problem()).toContain('ENOSPC');
    expect(file.lost).toBeGreaterThan(0);
    await file.close();
  });
});
