import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { entryOf } from '../store/testing/tools.ts';
import { encodeContent, type SnapshotEntry, type SnapshotHead } from './content.ts';
import { createSealKey, secretProblem } from './envelope.ts';
import { type ReadOptions, readSnapshot } from './read.ts';
import { SnapshotError } from './snapshot-error.ts';
import { sealedPieces } from './snapshots.ts';

const secret = 'a key of more than 16 characters';
const { random } = new Simulation({ seed: 1 }).world('home');
const head: SnapshotHead = {
  homeId: 'abc',
  homeName: 'east',
  revision: 1000,
  takenMs: 5,
  portolan: '0.1.0',
  files: { 'ca.crt': 'PEM' },
};

function entries(count: number, value = (index: number) => `{"metadata":{"name":"é${index}"}}`) {
  return Array.from({ length: count }, (_, index) =>
    entryOf({
      key: `/registry/core/configmaps/x/${String(index).padStart(5, '0')}`,
      value: Buffer.from(value(index)),
      createRevision: index + 1,
      revision: index + 1,
    }),
  );
}

function encode(all = entries(3), more: Partial<SnapshotHead> = {}): Buffer {
  return Buffer.concat([...sealedPieces(encodeContent({ ...head, ...more }, all))]);
}

async function encodeSealed(all = entries(3)): Promise<Buffer> {
  return Buffer.concat([...sealedPieces(encodeContent(head, all), await createSealKey(secret, random))]);
}

function inPieces(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
}

async function problemOf(bytes: Buffer, options: ReadOptions = {}): Promise<string> {
  const error = await readSnapshot([bytes], options).catch((thrown) => thrown);
  if (!(error instanceof SnapshotError)) return `no problem: ${JSON.stringify(error)}`;
  return error.message;
}

describe('snapshot: what is written is read again', () => {
  test.each([1, 7, 48, 4096, 1 << 20])('snapshot: in pieces of %i bytes -> every entry as it was', async (size) => {
    const all = entries(50, (index) => 'x'.repeat(index * 100));
    const seen: SnapshotEntry[] = [];
    const onEntry = (entry: SnapshotEntry) => seen.push({ ...entry, value: Buffer.from(entry.value) });
    const read = await readSnapshot(inPieces(encode(all), size), { onEntry });
    const { files: _files, ...facts } = head;
    expect(read).toEqual({ kind: 'read', facts, entries: 50, isEncrypted: false });
    expect(seen).toEqual(all.map(({ latin1: _latin1, ...entry }) => ({ ...entry, value: Buffer.from(entry.value) })));
  });

  test('snapshot: any values and sizes, encrypted or not -> as they were', async () => {
    const value = fc.uint8Array({ maxLength: 3000 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { maxLength: 20 }),
        fc.integer({ min: 1, max: 999 }),
        fc.boolean(),
        async (values, size, isSealed) => {
          const all = values.map((bytes, index) =>
            entryOf({ key: `/k/${100 + index}`, value: bytes, createRevision: 1, revision: 2 }),
          );
          const seen: string[] = [];
          await readSnapshot(inPieces(isSealed ? await encodeSealed(all) : encode(all), size), {
            secret,
            onEntry: (entry) => seen.push(Buffer.from(entry.value).toString('hex')),
          });
          expect(seen).toEqual(values.map((bytes) => Buffer.from(bytes).toString('hex')));
        },
      ),
      { numRuns: 12 },
    );
  });

  test('snapshot: an entry larger than a piece -> as it was', async () => {
    const all = entries(3, () => 'y'.repeat(700_000));
    let bytes = 0;
    await readSnapshot([encode(all)], { onEntry: (entry) => (bytes += entry.value.length) });
    expect(bytes).toBe(2_100_000);
  });
});

describe('snapshot: bad input', () => {
  test('snapshot: cut short anywhere -> refused', async () => {
    for (const [bytes, step] of [[encode(), 11] as const, [await encodeSealed(), 101] as const])
      for (let length = 0; length < bytes.length; length += step)
        expect(await problemOf(bytes.subarray(0, length), { secret }), `${length} bytes`).toMatch(
          /cut short|not a snapshot|empty|decrypted|damaged/,
        );
  });

  test('snapshot: one bit changed anywhere -> refused', async () => {
    for (const [bytes, step] of [[encode(), 7] as const, [await encodeSealed(), 83] as const]) {
      for (let at = 0; at < bytes.length; at += step) {
        const changed = Buffer.from(bytes);
        changed[at]! ^= 1;
        expect(await problemOf(changed, { secret }), `byte ${at}`).not.toContain('no problem');
      }
    }
  });

  test('snapshot: more after its end -> refused', async () => {
    expect(await problemOf(Buffer.concat([encode(), Buffer.from('x')]))).toContain('cut short or was changed');
  });

  test('snapshot: of a newer format or a newer portolan -> refused with both versions', async () => {
    const newer = Buffer.from(
      encode().toString('latin1').replace('"portolanSnapshot":1', '"portolanSnapshot":2'),
      'latin1',
    );
    expect(await problemOf(newer)).toMatch(/its format is 2, this portolan knows 1/);
    expect(await problemOf(encode(entries(1), { portolan: '0.2.0' }), { ownVersion: '0.1.9' })).toMatch(
      /portolan 0\.2\.0 took it, and this is 0\.1\.9/,
    );
    for (const portolan of ['0.1.12', '0.0.9', '0.1.0-rc.1'])
      expect(await problemOf(encode(entries(1), { portolan }), { ownVersion: '0.1.9' })).toContain('no problem');
    expect(await problemOf(encode(entries(1), { portolan: '2.0.0' }), { ownVersion: '1.9.0' })).toContain('2.0.0');
  });

  test('snapshot: encrypted -> unreadable, whole without the key, refused with another key', async () => {
    const bytes = await encodeSealed(entries(3, () => 'PRIVATE KEY'));
    expect(bytes.includes('PRIVATE')).toBe(false);
    expect(bytes.includes('east')).toBe(false);
    expect(await readSnapshot([bytes], {})).toEqual({ kind: 'sealed' });
    expect(await problemOf(bytes, { secret: 'another key of 16 characters' })).toMatch(/the key is not the one/);
    expect(await readSnapshot([bytes], { secret })).toMatchObject({ kind: 'read', isEncrypted: true, entries: 3 });
    expect(secretProblem('short')).toMatch(/16 at least/);
  });

  test('snapshot: a text, JSON, an endless line -> no snapshot', async () => {
    for (const text of ['hello\n', '{}\n', 'null\n', '[]\n', '{"portolanSnapshot":1}\n', 'x'.repeat(10_000)])
      expect(await problemOf(Buffer.from(text)), text.slice(0, 30)).toContain('not a snapshot');
    expect(await problemOf(Buffer.alloc(0))).toBe('it is empty');
  });

  test('snapshot: entries that no store has -> refused', async () => {
    const [first, second] = entries(2);
    expect(await problemOf(encode([second!, first!]))).toContain('out of order');
    expect(await problemOf(encode([first!, first!]))).toContain('out of order');
    expect(await problemOf(encode([{ ...first!, revision: 1001 }]))).toContain('newer than the snapshot');
    for (const revision of [0, -1, 1.5, Number.NaN, 2 ** 60])
      expect(await problemOf(encode([{ ...first!, revision, createRevision: revision }]))).toContain('is none');
    for (const more of [{ files: null }, { files: { 'ca.crt': 1 } }, { revision: '1' }, { homeId: 7 }])
      expect(await problemOf(encode([], more as unknown as SnapshotHead))).toContain('facts are incomplete');
  });
});
