// docs/guides/operations.md, "Backup and restore": snapshots of a home that runs and is written to are saved, listed, inspected
// and restored by the commands of the guide, and the folder of a stopped home is copied.

import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { type ApiProcess, connect, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { portolan, run, runPortolan } from './support/portolan.ts';

const guide = readFileSync(fileURLToPath(new URL('../docs/guides/operations.md', import.meta.url)), 'utf8');
const commands = [...guide.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]!.trim().split('\n'));

describeWith(['kubectl'], 'backup', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-backup-'));
  const stops: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(name: string, args: readonly string[] = []): Promise<ApiProcess> {
    const home = await startApi({ data: join(folder, name), args });
    stops.push(() => home.stop());
    return home;
  }
  const at = (name: string) => join(folder, name);
  const kubectl = (home: Pick<ApiProcess, 'kubeconfig'>, line: string) =>
    run(pathOf('kubectl')!, ['--kubeconfig', home.kubeconfig, ...line.split(' ')]);
  const mapsIn = async (home: ApiProcess) =>
    (await kubectl(home, 'get configmaps -n default -o name')).out
      .split('\n')
      .filter((line) => line.includes('/item-'));
  /** A line of the guide with the names of this test. */
  const asInGuide = (line: string, names: Record<string, string>) => {
    let words = line.replace(/^portolan /, `${portolan} `);
    for (const [from, to] of Object.entries(names)) words = words.replaceAll(from, to);
    return run('/bin/sh', ['-ec', words]);
  };

  test('a home that runs and is written to -> saved and restored as the guide says: nothing acknowledged is missing', async () => {
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
    const acknowledged = written;
    const [save, inspect] = commands.find((block) => block[0]!.startsWith('portolan snapshot save'))!;
    const names = {
      'broker.snapshot': at('one.snapshot'),
      'broker.kubeconfig': home.kubeconfig,
      '/var/lib/portolan': at('copy'),
    };
    const saved = await asInGuide(save!, names);
    expect(saved, saved.err).toMatchObject({ code: 0, err: '' });
    expect(saved.out).toMatch(
      /^saved \S+: home running \([0-9a-f]{32}\), taken \S+ at revision \d+ by portolan \S+, \d+ objects\n$/,
    );
    expect(statSync(at('one.snapshot')).mode & 0o777).toBe(0o600);
    const inspected = await asInGuide(inspect!, names);
    expect(inspected.out).toMatch(/^the checksum is right; home running .*\n[\s\S]*^configmaps +\d+$/m);
    isWriting = false;
    await writer;
    expect((await asInGuide(save!, names)).err).toContain('the file exists');
    const [preview, restore] = commands.find((block) => block[0]!.startsWith('portolan snapshot restore'))!;
    const previewed = await asInGuide(preview!, names);
    expect(previewed).toMatchObject({ code: 7 });
    expect(previewed.err).toContain('nothing was changed');
    expect(existsSync(at('copy'))).toBe(false);
    const restored = await asInGuide(restore!, names);
    expect(restored, restored.err).toMatchObject({ code: 0 });
    expect(restored.out).toMatch(/restored \d+ objects into \S+; its revision is \d{16} now/);
    const copy = await start('copy');
    const found = new Set(await mapsIn(copy));
    for (let n = 0; n < acknowledged; n += 1) expect(found, `item-${n}`).toContain(`configmap/item-${n}`);
    // The authority is the same: credentials that were handed out before are good for the new place.
    const server = `--server https://127.0.0.1:${copy.port}`;
    expect((await kubectl({ kubeconfig: home.kubeconfig }, `${server} auth can-i delete nodes`)).out).toBe('yes\n');
  });

  test('restored in place -> a watcher is told to list again, removed accounts are listed, the former state is kept', async () => {
    const home = await start('place');
    await kubectl(home, 'create serviceaccount leaver -n default');
    await kubectl(home, 'create clusterrolebinding leaver --clusterrole view --serviceaccount default:leaver');
    await kubectl(home, 'create serviceaccount stayer -n default');
    const snapshot = at('place.snapshot');
    expect((await runPortolan(['snapshot', 'save', snapshot, '--kubeconfig', home.kubeconfig])).code).toBe(0);
    await kubectl(home, 'delete serviceaccount leaver -n default');
    await kubectl(home, 'delete clusterrolebinding leaver');
    await kubectl(home, 'create configmap later -n default');
    const revision = (await kubectl(home, 'get configmap later -n default -o jsonpath={.metadata.resourceVersion}'))
      .out;
    const restore = ['snapshot', 'restore', snapshot, '--data', at('place'), '--yes'];
    const running = await runPortolan(restore);
    expect(running.code).toBe(5);
    expect(running.err).toContain('another process has it open; stop that one first');
    await home.stop();
    const restored = await runPortolan(restore);
    expect(restored, restored.err).toMatchObject({ code: 0 });
    expect(restored.out).toMatch(/these came back with their rights, and are not in the present state/);
    expect(restored.out).toMatch(/^binding +leaver +ClusterRole view for ServiceAccount default\/leaver$/m);
    expect(restored.out).toMatch(/^account +default\/leaver$/m);
    expect(restored.out).not.toContain('stayer');
    const [former] = readdirSync(at('place')).filter((name) => name.startsWith('before-restore-'));
    expect(readdirSync(join(at('place'), former!)).sort()).toEqual(['pki', 'store']);
    const again = await start('place');
    const connection = await connect(again.kubeconfig);
    const watched = await connection.request('GET', `/api/v1/configmaps?watch=1&resourceVersion=${revision}`);
    connection.close();
    expect([watched.status, watched.body.toString()]).toEqual([
      expect.any(Number),
      expect.stringContaining('"code":410'),
    ]);
    expect((await kubectl(again, 'get configmap later -n default')).code).toBe(1);
    expect((await kubectl(again, 'get serviceaccount leaver -n default -o name')).out).toBe('serviceaccount/leaver\n');
  });

  test('cut short, of another home, of a newer version -> refused with the reason, the folder is as it was', async () => {
    const home = await start('refused');
    await kubectl(home, 'create configmap item-1 -n default');
    const other = await start('other');
    const files = {
      own: at('own.snapshot'),
      other: at('other.snapshot'),
      cut: at('cut.snapshot'),
      newer: at('newer.snapshot'),
    };
    await runPortolan(['snapshot', 'save', files.own, '--kubeconfig', home.kubeconfig]);
    await runPortolan(['snapshot', 'save', files.other, '--kubeconfig', other.kubeconfig]);
    await home.stop();
    cpSync(files.own, files.cut);
    truncateSync(files.cut, statSync(files.cut).size - 100);
    const text = readFileSync(files.own, 'latin1').replace('"portolanSnapshot":1', '"portolanSnapshot":9');
    writeFileSync(files.newer, text, 'latin1');
    const before = filesBelow(at('refused'));
    const expected = {
      cut: /snapshot \S+cut.snapshot: it is cut short/,
      other: /it is of home other \([0-9a-f]{32}\), and \S+ has the state of home [0-9a-f]{32}; give an empty folder/,
      newer: /its format is 9, this portolan knows 1/,
    };
    for (const [name, reason] of Object.entries(expected)) {
      const refused = await runPortolan([
        'snapshot',
        'restore',
        files[name as 'cut'],
        '--data',
        at('refused'),
        '--yes',
      ]);
      expect([name, refused.code]).toEqual([name, 1]);
      expect(refused.err).toMatch(reason);
      expect(filesBelow(at('refused'))).toEqual(before);
    }
    expect(await mapsIn(await start('refused'))).toEqual(['configmap/item-1']);
    expect((await runPortolan(['snapshot', 'inspect', files.cut])).err).toMatch(/cut short/);
    expect((await runPortolan(['snapshot', 'inspect', at('none')])).code).toBe(4);
  });

  test('encrypted -> no key inside can be read, and it is restored with the key alone', async () => {
    const home = await start('sealed');
    const [keyFile, file] = [at('key'), at('sealed.snapshot')];
    writeFileSync(keyFile, 'a key of more than sixteen characters\n');
    expect(
      (await runPortolan(['snapshot', 'save', file, '--kubeconfig', home.kubeconfig, '--key-file', keyFile])).code,
    ).toBe(0);
    expect(readFileSync(file, 'latin1')).not.toMatch(/PRIVATE KEY|kube-system/);
    expect((await runPortolan(['snapshot', 'inspect', file])).out).toMatch(/the checksum is right; it is encrypted/);
    const restore = ['snapshot', 'restore', file, '--data', at('unsealed'), '--yes'];
    expect((await runPortolan(restore)).err).toMatch(/it is encrypted; give the key with --key-file/);
    writeFileSync(at('wrong'), 'another key of more than sixteen characters');
    expect((await runPortolan([...restore, '--key-file', at('wrong')])).err).toMatch(/the key is not the one/);
    expect(existsSync(join(at('unsealed'), 'store'))).toBe(false);
    expect(
      (await runPortolan([...restore, '--key-file', '-'], { input: 'a key of more than sixteen characters\n' })).code,
    ).toBe(0);
    writeFileSync(at('short'), 'short');
    const short = await runPortolan([
      'snapshot',
      'save',
      at('x'),
      '--kubeconfig',
      home.kubeconfig,
      '--key-file',
      at('short'),
    ]);
    expect([short.code, short.err]).toEqual([2, expect.stringContaining('too short')]);
  });

  test('the right to take one -> of its own: reading every path is not enough, portolan:snapshot is', async () => {
    const home = await start('rights');
    for (const name of ['reader', 'taker']) await kubectl(home, `create serviceaccount ${name} -n default`);
    await kubectl(home, 'create clusterrole all-paths --verb=get --non-resource-url=*');
    await kubectl(home, 'create clusterrolebinding reader --clusterrole all-paths --serviceaccount default:reader');
    await kubectl(
      home,
      'create clusterrolebinding taker --clusterrole portolan:snapshot --serviceaccount default:taker',
    );
    const kubeconfigOf = async (name: string) => {
      const token = (await kubectl(home, `create token ${name} -n default`)).out.trim();
      const text = readFileSync(home.kubeconfig, 'utf8').replace(
        / {6}client-certificate-data: .*\n {6}client-key-data: .*\n/,
        `      token: ${token}\n`,
      );
      writeFileSync(at(`${name}.kubeconfig`), text);
      return at(`${name}.kubeconfig`);
    };
    const refused = await runPortolan([
      'snapshot',
      'save',
      at('r.snapshot'),
      '--kubeconfig',
      await kubeconfigOf('reader'),
    ]);
    expect([refused.code, refused.err]).toEqual([5, expect.stringContaining('cannot post path "/snapshots"')]);
    expect(readdirSync(folder).filter((name) => name.startsWith('r.snapshot'))).toEqual([]);
    const taken = await runPortolan([
      'snapshot',
      'save',
      at('t.snapshot'),
      '--kubeconfig',
      await kubeconfigOf('taker'),
    ]);
    expect(taken, taken.err).toMatchObject({ code: 0 });
  });

  test('list -> the folder of a running home, and a folder of this machine', async () => {
    const home = await start('listed', ['--snapshots', at('elsewhere')]);
    const name = '20261116T120000Z-77.snapshot';
    cpSync(at('one.snapshot'), join(at('elsewhere'), name));
    const listed = await runPortolan(['snapshot', 'list', '--kubeconfig', home.kubeconfig]);
    expect(listed.out).toMatch(
      new RegExp(`^folder \\S+elsewhere\\nSNAPSHOT +TAKEN +BYTES\\n${name} +2026-11-16T12:00:00Z +\\d+\\n$`),
    );
    expect((await runPortolan(['snapshot', 'list', '--dir', at('elsewhere'), '-o', 'name'])).out).toBe(`${name}\n`);
    const off = await start('off', ['--snapshots', 'none']);
    expect((await runPortolan(['snapshot', 'list', '--kubeconfig', off.kubeconfig])).out).toBe(
      'no snapshots are taken on a schedule\n',
    );
  });

  test('a stopped home, copied elsewhere -> its objects, its certificates and the kubeconfigs of its users', async () => {
    const home = await start('stopped');
    await kubectl(home, 'create namespace kept');
    const handedOut = join(folder, 'user.kubeconfig');
    cpSync(home.kubeconfig, handedOut);
    await home.stop();
    cpSync(join(folder, 'stopped'), join(folder, 'moved'), { recursive: true });
    const moved = await start('moved');
    expect((await kubectl(moved, 'get namespace kept -o name')).out).toBe('namespace/kept\n');
    const server = `--server https://127.0.0.1:${moved.port}`;
    expect((await kubectl({ kubeconfig: handedOut }, `${server} get namespace kept -o name`)).out).toBe(
      'namespace/kept\n',
    );
  });
});

/** Names and contents, so that a change shows. Opening a database counts in its header: its objects are looked at instead. */
function filesBelow(path: string): Record<string, string> {
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');
  return Object.fromEntries(
    files
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((file) => [file, file.endsWith('.db') ? '' : digest(file)]),
  );
}
