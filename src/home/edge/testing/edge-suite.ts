// The set-up of a test file of the edge: one PKI for the file, and a served edge for each test, closed after it.

import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Pki } from '../../security/pki.ts';
import type { ServeOptions } from '../server.ts';
import { type Bench, openBench, openTestPki, type Script } from './bench.ts';

export interface EdgeSuite {
  pki(): Pki;
  open(script: Script, options?: Partial<ServeOptions>): Promise<Bench>;
}

export function edgeSuite(): EdgeSuite {
  let opened: Awaited<ReturnType<typeof openTestPki>>;
  let bench: Bench | undefined;
  beforeAll(async () => {
    opened = await openTestPki();
  });
  afterAll(() => opened.remove());
  afterEach(() => bench?.close());
  return {
    pki: () => opened.pki,
    open: async (script, options = {}) => {
      bench = await openBench(opened.pki, script, options);
      return bench;
    },
  };
}
