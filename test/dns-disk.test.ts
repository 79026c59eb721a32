// Parts other than the home on a disk that is really full: a resolver and an authority say so and go on answering, agent and
// peering need no disk.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askUdp } from '../src/dns/testing/edge/client.ts';
import type { Diagnosis } from '../src/doctor/diagnosis.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { until } from './support/dns-process.ts';
import { runPortolan } from './support/portolan.ts';
import { type RoleProcess, startRole } from './support/roles.ts';

const root = mkdtempSync(join(tmpdir(), 'portolan-dns-disk-'));
const mount = join(root, 'small');
const ballast = join(mount, 'ballast');
const isRoot = process.getuid?.() === 0;
const says = /^ok\nnames are not copied to disk for the next start: .*names: .*ENOSPC/;

describe.skipIf(!isRoot)('a full disk (needs root to mount a small one)', () => {
  let home: ApiProcess;
  const running: RoleProcess[] = [];
  const start = async (...words: string[]) => {
    const own = ['--kubeconfig', home.kubeconfig, '--admin-listen', '127.0.0.1:0', '--log-level', 'warn'];
    const role = await startRole([...words, ...own]);
    running.push(role);
    return role;
  };
  const doctor = async () => {
    const { out } = await runPortolan(['doctor', '-o', 'json', '--kubeconfig', home.kubeconfig]);
    return (JSON.parse(out) as Diagnosis).findings.filter(({ code }) => code === 'PTL0506');
  };

  beforeAll(async () => {
    mkdirSync(mount);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', mount]);
    // A short write is the point.
    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4k', 'count=1000']);
    home = await startApi({ data: join(root, 'home') });
  });
  afterAll(async () => {
    for (const role of running) await role.stop('SIGKILL');
    await home?.stop('SIGKILL');
    execFileSync('umount', ['-l', mount]);
    rmSync(root, { recursive: true, force: true });
  });

  test('a resolver and an authority keep their names there -> answer, say so in /readyz, doctor PTL0506; room again -> gone', async () => {
    const listen = ['--listen', '127.0.0.1:0', '--state'];
    const dns = await start('dns', '--cluster-id', 'west', ...listen, join(mount, 'dns'));
    const federation = ['--federation', 'world', '--clusterset', 'default', '--broker-kubeconfig', home.kubeconfig];
    const authority = await start('authority', ...federation, ...listen, join(mount, 'authority'));
    await until('the resolver says so', async () => says.test((await dns.readyz()).text));
    await until('the authority says so', async () => says.test((await authority.readyz()).text));
    const [host = '', port] = (/^listening (\S+)$/m.exec(dns.out())?.[1] ?? '').split(':');
    expect(await askUdp({ host, port: Number(port) }, 'none.default.svc.cluster.local A')).toBe('NXDOMAIN');
    expect(dns.log().match(/names cannot be copied to disk/g)).toHaveLength(1);
    expect(await doctor()).toMatchObject([{ severity: 'warning', fix: expect.stringContaining('Make room') }]);

    rmSync(ballast);
    await until('both have copied their names', async () =>
      (await Promise.all([dns.readyz(), authority.readyz()])).every(({ text }) => text === 'ok\n'),
    );
    expect(await doctor()).toEqual([]);
  });

  test('agent and peering in a folder on the full disk -> they write nothing there, and work', async () => {
    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4k', 'count=1000']);
    const before = process.cwd();
    process.chdir(mount);
    try {
      const peering = await start('peering', '--trust-domain', 'west.example', '--listen', '127.0.0.1:0');
      const agent = await start('agent');
      await until('peering is ready', async () => (await peering.readyz()).status === 200);
      // It is no member of a clusterset, and that is all it misses.
      expect((await agent.readyz()).text).not.toMatch(/ENOSPC|space/);
      expect(peering.log() + agent.log()).not.toMatch(/ENOSPC|no space/);
    } finally {
      process.chdir(before);
    }
  });
});
