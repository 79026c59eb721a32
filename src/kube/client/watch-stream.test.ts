import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeWatch, splitLines } from './watch-stream.ts';

test('watch stream: split into chunks in any way, also inside a character -> the same events', async () => {
  const events = ['plain', 'ümläut → 漢字 🚢', ''].map((name) => ({ type: 'ADDED', object: { metadata: { name } } }));
  const bytes = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const chunks = edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
      expect(await collect(decodeWatch(from(chunks), 'watch'))).toEqual(events);
    }),
  );
});

test('watch stream: a last line without its end -> has not happened', async () => {
  const chunks = [Buffer.from('{"type":"ADDED","object":{}}\n{"type":"ADD')];
  expect(await collect(decodeWatch(from(chunks), 'watch'))).toHaveLength(1);
});

test.each(['nonsense\n', '{"type":"ADDED"}\n', '[]\n'])('watch stream: %j -> an error that quotes it', async (line) => {
  await expect(collect(decodeWatch(from([Buffer.from(line)]), 'watch tops'))).rejects.toThrow(/watch tops: not/);
});

test('watch stream: one line in a hundred thousand chunks -> each byte is joined once', async () => {
  const chunk = Buffer.alloc(100, 'x');
  const source = (async function* () {
    for (let count = 0; count < 100_000; count += 1) yield chunk;
    yield Buffer.from('\n');
  })();
  const [line] = await collect(splitLines(source, 'watch'));
  expect(line).toHaveLength(10_000_000);
});

test('watch stream: no newline for ever -> given up, memory is bounded', async () => {
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  const endless = (async function* () {
    for (;;) yield chunk;
  })();
  await expect(collect(splitLines(endless, 'watch'))).rejects.toThrow(/longer than/);
});

async function* from(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}
