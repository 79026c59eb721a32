// The work behind `portolan snapshot`: save and list ask a running home, inspect reads a file.

import type { InspectFlags, ListFlags, SaveFlags } from '../../cli/snapshot/command.ts';
import { formatOutput, formatTable, parseOutput } from '../../cli/table.ts';
import { type CliDeps, findHomeOf, type HomeFlags } from '../../cli/with-home.ts';
import type { SnapshotFacts } from '../../home/snapshot/content.ts';
import { createSealKey, Sealer } from '../../home/snapshot/envelope.ts';
import { paced, readSnapshot } from '../../home/snapshot/read.ts';
import { snapshotsIn } from '../../home/snapshot/retention.ts';
import type { SnapshotList } from '../../home/snapshot/snapshots.ts';
import { createRequester, type Requester } from '../../kube/client/request.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { snapshotChunks, withFileNamed, writeNewFile } from './file.ts';
import { readSnapshotKey } from './key-file.ts';

export async function saveSnapshot(deps: CliDeps, file: string, flags: SaveFlags): Promise<void> {
  const { world, host, print } = deps;
  const secret = await readSnapshotKey(host, flags.keyFile);
  await asking(deps, flags, async (requester) => {
    const sealer = new Sealer(secret === undefined ? undefined : await createSealKey(secret, world.random));
    let facts: SnapshotFacts | undefined;
    let entries = 0;
    await withFileNamed(file, () =>
      writeNewFile(file, async (write) => {
        const chunks = await requester.stream({ method: 'POST', path: '/snapshots' });
        const out: Uint8Array[] = [sealer.begin()];
        const flush = async () => {
          for (const bytes of out.splice(0)) await write(bytes);
        };
        // What arrives is verified as it is written: a stream that breaks off leaves no file.
        const read = await readSnapshot(paced(chunks, flush), { onPayload: (bytes) => out.push(sealer.add(bytes)) });
        out.push(sealer.end());
        await flush();
        if (read.kind === 'read') ({ facts, entries } = read);
      }),
    );
    print(`saved ${file}: ${describeFacts(facts!)}, ${entries} objects`);
  });
}

export async function listSnapshots(deps: CliDeps, flags: ListFlags): Promise<void> {
  const format = parseOutput(flags.output);
  const list = flags.dir === undefined ? await askedList(deps, flags) : await listIn(deps, flags.dir);
  const { snapshots, folder, problem } = list;
  const rows = snapshots.map(({ name, takenAt, sizeBytes }) => [name, takenAt, String(sizeBytes)]);
  const lines = formatOutput(format, {
    value: list,
    names: snapshots.map(({ name }) => name),
    text: () => [
      folder === '' ? 'no snapshots are taken on a schedule' : `folder ${folder}`,
      ...(rows.length === 0 ? [] : formatTable(['SNAPSHOT', 'TAKEN', 'BYTES'], rows)),
      ...(problem === '' ? [] : [`the last one could not be taken: ${problem}`]),
    ],
  });
  for (const line of lines) deps.print(line);
}

export async function inspectSnapshot(deps: CliDeps, file: string, flags: InspectFlags): Promise<void> {
  const format = parseOutput(flags.output);
  const secret = await readSnapshotKey(deps.host, flags.keyFile);
  const counts = new Map<string, number>();
  const onEntry = ({ key }: { readonly key: string }) => {
    const kind = key
      .split('/')
      .slice(2, 4)
      .join('/')
      .replace(/^core\//, '');
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  };
  const read = await withFileNamed(file, () => readSnapshot(snapshotChunks(file), { secret, onEntry }));
  const kinds = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  const value = read.kind === 'sealed' ? { isEncrypted: true } : { ...read.facts, isEncrypted: read.isEncrypted };
  const lines = formatOutput(format, {
    value: { ...value, objects: Object.fromEntries(kinds) },
    names: kinds.map(([kind]) => kind),
    text: () =>
      read.kind === 'sealed'
        ? ['the checksum is right; it is encrypted, and its content is shown with --key-file']
        : [
            `the checksum is right; ${describeFacts(read.facts)}${read.isEncrypted ? ', encrypted' : ''}`,
            ...formatTable(
              ['KIND', 'OBJECTS'],
              kinds.map(([kind, count]) => [kind, String(count)]),
            ),
          ],
  });
  for (const line of lines) deps.print(line);
}

export function describeFacts({ homeName, homeId, takenMs, revision, portolan }: SnapshotFacts): string {
  return `home ${homeName} (${homeId}), taken ${formatTime(takenMs)} at revision ${revision} by portolan ${portolan}`;
}

function askedList(deps: CliDeps, flags: ListFlags): Promise<SnapshotList> {
  return asking(deps, flags, (requester) => requester.send<SnapshotList>({ method: 'GET', path: '/snapshots' }));
}

async function listIn({ world }: CliDeps, folder: string): Promise<SnapshotList> {
  const snapshots = snapshotsIn(await world.disk.list(folder));
  return {
    folder,
    snapshots: snapshots.map(({ name, takenMs, sizeBytes }) => ({ name, takenAt: formatTime(takenMs), sizeBytes })),
    problem: '',
  };
}

async function asking<T>(deps: CliDeps, flags: HomeFlags, work: (requester: Requester) => Promise<T>): Promise<T> {
  const access = await findHomeOf(deps, flags);
  const transport = deps.world.network.http(access);
  try {
    return await work(createRequester(transport, { world: deps.world, userAgent: 'portolan-cli' }));
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const why = 'has no snapshots: it is a Kubernetes, which is backed up with its etcd, or a portolan without them';
    throw new Error(`home ${access.server} ${why}`, { cause: error });
  } finally {
    transport.close();
  }
}
