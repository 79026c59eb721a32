// The database's thread: answers one request at a time and tidies up while there is none.

import { parentPort } from 'node:worker_threads';
import { Database } from './database.ts';
import type { Answer, Request, Trouble } from './protocol.ts';

/** SQLite's primary result codes. */
const busyCode = 5;
const fullCode = 13;

const port = parentPort!;
let database: Database | undefined;
let tidying: NodeJS.Immediate | undefined;

port.on('message', (request: Request) => {
  clearImmediate(tidying);
  const reply = attempt(() => answer(request));
  const transfer = reply.kind === 'rows' ? [reply.rows.numbers.buffer, reply.rows.bytes.buffer] : [];
  port.postMessage(reply, transfer);
  const isLoaded = reply.kind === 'rows' && reply.lastRow === undefined;
  if (reply.kind === 'appended' || isLoaded) tidying = setImmediate(tidy);
  if (request.kind === 'close') port.close();
});

function answer(request: Request): Answer {
  switch (request.kind) {
    case 'open':
      database = new Database(request.options);
      return { kind: 'opened', floor: database.floor };
    case 'read':
      return { kind: 'rows', ...database!.read(request.afterRow) };
    case 'append':
      return { kind: 'appended', use: database!.append(request.batch) };
    case 'probe':
      database!.probe();
      return { kind: 'done' };
    case 'close':
      database?.close();
      return { kind: 'done' };
  }
}

function tidy(): void {
  const reply = attempt((): Answer => {
    if (database!.tidy()) tidying = setImmediate(tidy);
    return { kind: 'done' };
  });
  // A full disk shows at the next batch, which is then refused; tidying waits until one succeeds.
  if (reply.kind === 'trouble' && reply.trouble.kind !== 'full') port.postMessage(reply);
}

function attempt(run: () => Answer): Answer {
  try {
    return run();
  } catch (error) {
    return { kind: 'trouble', trouble: troubleOf(error) };
  }
}

function troubleOf(error: unknown): Trouble {
  const { errcode, errstr, message } = error as { errcode?: number; errstr?: string; message: string };
  // The low byte is the primary code; the rest says more.
  const primary = (errcode ?? 0) & 0xff;
  const kind = primary === fullCode ? 'full' : primary === busyCode ? 'locked' : 'broken';
  const more = errcode === undefined ? '' : ` (${errstr === message ? '' : `${errstr}, `}SQLite code ${errcode})`;
  return { kind, message: message + more };
}
