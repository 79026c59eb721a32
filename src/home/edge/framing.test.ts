// The same answers over HTTP/1.1 and HTTP/2, byte for byte: of a known length and streamed, one after the other on a kept
// connection, and pipelined. The reader of HTTP/1.1 is strict, so that a byte too many or too few shows.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { HttpResponse } from '../../base/http.ts';
import { type Bench, sendHttp2, stream, until } from './testing/bench.ts';
import { edgeSuite } from './testing/edge-suite.ts';
import { readHttp1Answers } from './testing/http1-answers.ts';

interface Exchange {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly body: string;
  readonly isStream: boolean;
  /** Sizes of the streamed chunks; what is left over is the last one. */
  readonly chunks: readonly number[];
  /** Streamed chunks after which the event loop turns before the next one. */
  readonly turns: readonly boolean[];
}

const exchanges: fc.Arbitrary<Exchange> = fc.record({
  method: fc.constantFrom('GET', 'GET', 'HEAD', 'POST'),
  body: fc
    .tuple(fc.constantFrom(0, 1, 79, 1_000, 16_384, 65_536, 200_000, 700_000), fc.nat(100))
    .map(([size, more]) => pattern(size + (size === 0 ? 0 : more))),
  isStream: fc.boolean(),
  chunks: fc.array(fc.constantFrom(1, 80, 4_000, 16_384, 65_536, 100_000), { maxLength: 12 }),
  turns: fc.array(fc.boolean(), { maxLength: 12 }),
});

const { open } = edgeSuite();

describe('edge: framing', () => {
  test('edge: a streamed answer that is ready in one turn -> arrives whole over HTTP/1.1, and the connection stays in step', async () => {
    const answers: Exchange[] = [
      { method: 'GET', body: pattern(17_913), isStream: true, chunks: [80], turns: [] },
      { method: 'GET', body: 'next', isStream: false, chunks: [], turns: [] },
    ];
    const bench = await open(scripted(answers));
    expect(await overHttp1(bench, answers, { isPipelined: false })).toEqual(bodiesOf(answers));
  });

  test('edge: random answers -> byte for byte the same over HTTP/2, kept HTTP/1.1 and pipelined HTTP/1.1', async () => {
    let answers: readonly Exchange[] = [];
    const bench = await open((request) => scripted(answers)(request));
    await fc.assert(
      fc.asyncProperty(fc.array(exchanges, { minLength: 1, maxLength: 6 }), async (next) => {
        answers = next;
        expect(await overHttp2(bench, answers)).toEqual(bodiesOf(answers));
        expect(await overHttp1(bench, answers, { isPipelined: false })).toEqual(bodiesOf(answers));
        expect(await overHttp1(bench, answers, { isPipelined: true })).toEqual(bodiesOf(answers));
      }),
      { numRuns: 40 },
    );
  }, 60_000);
});

function scripted(answers: readonly Exchange[]) {
  return ({ path }: { readonly path: string }): HttpResponse => {
    const answer = answers[Number(path.slice(1))]!;
    const body = Buffer.from(answer.body);
    return answer.isStream
      ? stream(inChunks(body, answer), false)
      : { status: 200, headers: { 'content-type': 'text/plain' }, body };
  };
}

async function* inChunks(body: Uint8Array, { chunks, turns }: Exchange): AsyncGenerator<Uint8Array> {
  let from = 0;
  for (const [index, size] of chunks.entries()) {
    if (from >= body.length) return;
    yield body.subarray(from, from + size);
    from += size;
    if (turns[index]) await new Promise((resolve) => setImmediate(resolve));
  }
  if (from < body.length) yield body.subarray(from);
}

function bodiesOf(answers: readonly Exchange[]): string[] {
  return answers.map(({ method, body }) => (method === 'HEAD' ? '' : body));
}

async function overHttp2({ http2 }: Bench, answers: readonly Exchange[]): Promise<string[]> {
  const session = http2();
  const bodies: string[] = [];
  for (const [index, { method }] of answers.entries()) {
    bodies.push((await sendHttp2(session, { method, path: `/${index}`, ...sentBody(method) })).body);
  }
  session.destroy();
  return bodies;
}

async function overHttp1(
  { raw }: Bench,
  answers: readonly Exchange[],
  { isPipelined }: { readonly isPipelined: boolean },
): Promise<string[]> {
  const socket = await raw({ ALPNProtocols: ['http/1.1'] });
  const methods = answers.map(({ method }) => method);
  const received: Buffer[] = [];
  socket.on('data', (data: Buffer) => received.push(data));
  const read = () => readHttp1Answers(Buffer.concat(received), methods);
  const requests = answers.map(({ method }, index) => requestText(method, `/${index}`));
  if (isPipelined) socket.write(requests.join(''));
  for (const [index, request] of requests.entries()) {
    if (!isPipelined) socket.write(request);
    await until(() => read().length > index);
  }
  socket.destroy();
  return read().map(({ body }) => body.toString());
}

function requestText(method: string, path: string): string {
  const { body } = sentBody(method);
  const length = body === undefined ? '' : `content-length: ${body.length}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nhost: x\r\n${length}\r\n${body ?? ''}`;
}

function sentBody(method: string): { readonly body?: string } {
  return method === 'POST' ? { body: 'a body' } : {};
}

/** Text in which a piece that is missing, repeated or out of place shows. */
function pattern(length: number): string {
  return Array.from({ length: Math.ceil(length / 8) }, (_, index) => `${String(index).padStart(7, '.')}\n`)
    .join('')
    .slice(0, length);
}
