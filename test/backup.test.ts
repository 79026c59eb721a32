// docs/guides/operations.md, "Backup and restore": the folder of a stopped home, and of one that runs and is written to, is
// copied as the guide says, and the copy is a home with everything that was acknowledged.

import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { run } from './support/portolan.ts';

const guide = readFileSync(fileURLToPath(new URL('../docs/guides/operations.md', import.meta.url)), 'utf8');
const commands = [...guide.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]!.trim());

describeWith(['kubectl'], 'backup', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-backup-'));
  const stops: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(name: string): Promise<ApiProcess> {
    const home = await startApi({ data: join(folder, name) });
    stops.push(() => home.stop());
    return home;
  }
  const kubectl = (home: Pick<ApiProcess, 'kubeconfig'>, line: string) =>
    run(pathOf('kubectl')!, ['--kubeconfig', home.kubeconfig, ...line.split(' ')]);
  const mapsIn = async (home: ApiProcess) =>
    (await kubectl(home, 'get configmaps -n default -o name')).out
      .split('\n')
      .filter((line) => line.includes('/item-'));

  test('a home that runs and is written to -> paused, copied and resumed as the guide says: nothing acknowledged is missing', async () => {
    const home = await start('running');
    let written = 0;
    let isWriting = true;
    const writer = (async () => {
      while (isWriting) {
        const { code } = await kubectl(home, `create configmap item-${written} -n default --from-literal=a=b`);
        if (code === 0) written += 1;
      }
    })();
    await expect.poll(() => written, { timeout: 30_000 }).toBeGreaterThan(2);
    const [pause, copy, resume] = commands.find((block) => block.includes('-STOP'))!.split('\n');
    const script = (line: string) =>
      line
        .replaceAll('PID', String(home.pid))
        .replaceAll('/var/lib/portolan', join(folder, 'running'))
        .replaceAll('/backup/portolan', join(folder, 'copy'));
    expect((await run('/bin/sh', ['-ec', script(pause!)])).code).toBe(0);
    const acknowledged = written;
    expect((await run('/bin/sh', ['-ec', script(copy!)])).code).toBe(0);
    expect((await run('/bin/sh', ['-ec', script(resume!)])).code).toBe(0);
    await expect.poll(() => written, { timeout: 30_000 }).toBeGreaterThan(acknowledged + 1);
    isWriting = false;
    await writer;
    const restored = await start('copy');
    const found = new Set(await mapsIn(restored));
    for (let n = 0; n < acknowledged; n += 1) expect(found, `item-${n}`).toContain(`configmap/item-${n}`);
    expect((await mapsIn(home)).length).toBe(written);
  });

  test('a stopped home, restored elsewhere -> its objects, its certificates and the kubeconfigs of its users', async () => {
    const home = await start('stopped');
    await kubectl(home, 'create namespace kept');
    const handedOut = join(folder, 'user.kubeconfig');
    cpSync(home.kubeconfig, handedOut);
    await home.stop();
    cpSync(join(folder, 'stopped'), join(folder, 'moved'), { recursive: true });
    const moved = await start('moved');
    expect((await kubectl(moved, 'get namespace kept -o name')).out).toBe('namespace/kept\n');
    // The authority is the same: credentials that were handed out before are good for the new place.
    const server = `--server https://127.0.0.1:${moved.port}`;
    expect((await kubectl({ kubeconfig: handedOut }, `${server} get namespace kept -o name`)).out).toBe(
      'namespace/kept\n',
    );
    expect((await kubectl(moved, 'auth can-i delete nodes')).out).toBe('yes\n');
  });
});
