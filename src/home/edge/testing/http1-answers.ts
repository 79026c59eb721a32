// Reads the answers of one HTTP/1.1 connection strictly (RFC 9112): what is not an answer in its place is an error.

export interface Http1Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The answers that are complete; bytes behind the last one throw. */
export function readHttp1Answers(bytes: Buffer, methods: readonly string[]): Http1Answer[] {
  const answers: Http1Answer[] = [];
  let at = 0;
  for (const method of methods) {
    const end = bytes.indexOf('\r\n\r\n', at);
    if (end === -1) return answers;
    const [statusLine = '', ...lines] = bytes.toString('latin1', at, end).split('\r\n');
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1];
    if (status === undefined) throw new Error(`answer ${answers.length}: no status line: ${statusLine.slice(0, 80)}`);
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const body = method === 'HEAD' ? { bytes: Buffer.alloc(0), end: end + 4 } : readBody(bytes, end + 4, headers);
    if (body === undefined) return answers;
    answers.push({ status: Number(status), headers, body: body.bytes });
    at = body.end;
  }
  if (at !== bytes.length) throw new Error(`${bytes.length - at} bytes behind the last answer`);
  return answers;
}

interface Piece {
  readonly bytes: Buffer;
  readonly end: number;
}

function readBody(bytes: Buffer, from: number, headers: Readonly<Record<string, string>>): Piece | undefined {
  if (headers['transfer-encoding'] === 'chunked') return readChunks(bytes, from);
  const end = from + Number(headers['content-length'] ?? 0);
  return end > bytes.length ? undefined : { bytes: bytes.subarray(from, end), end };
}

function readChunks(bytes: Buffer, from: number): Piece | undefined {
  const chunks: Buffer[] = [];
  let at = from;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const line = bytes.toString('latin1', at, lineEnd);
    if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`no size of a chunk: ${line.slice(0, 80)}`);
    const end = lineEnd + 2 + Number.parseInt(line, 16);
    if (end + 2 > bytes.length) return undefined;
    if (bytes.toString('latin1', end, end + 2) !== '\r\n') throw new Error('a chunk goes on behind its end');
    if (end === lineEnd + 2) return { bytes: Buffer.concat(chunks), end: end + 2 };
    chunks.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}
