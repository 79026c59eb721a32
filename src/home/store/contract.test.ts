// The contract, on both implementations.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { createMemoryStore, openSqliteStore } from '../open-store.ts';
import { storeContract } from './contract.ts';
import { TestWorld } from './testing/test-world.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-store-'));
afterAll(() => rmSync(directory, { recursive: true }));
let count = 0;

storeContract('memory', async () => createMemoryStore(new TestWorld()));
storeContract('sqlite', () => openSqliteStore({ ...new TestWorld(), path: join(directory, `${count++}.db`) }));
