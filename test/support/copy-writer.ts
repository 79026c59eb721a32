// A process that writes one copy of names after the other, and says which one is on disk. Run with the file's path; to be
// killed at any moment.

import { recordType } from '../../src/base/dns/codes.ts';
import { createRealDisk } from '../../src/base/real/disk.ts';
import { copyPieces } from '../../src/catalog/copy/name-copy.ts';
import { order, plainRecord } from '../../src/catalog/names/answers.ts';
import { NameTable } from '../../src/catalog/names/name-table.ts';

const path = process.argv[2]!;
const disk = createRealDisk();
const table = new NameTable({ serial: 1 });
for (let i = 0; i < 20_000; i++) {
  const records = [plainRecord(Uint8Array.of(10, 0, i >> 8, i & 255))];
  table.put(`svc-${i}.shop.svc.cluster.local`, 0, [{ type: recordType.A, order: order.fixed, records }]);
}
for (let number = 1; ; number++) {
  const facts = { owner: 'cluster east', zones: [], asOfMs: number };
  await disk.write(path, copyPieces(table.snapshot(), facts), { isOnlyWriter: true });
  process.stdout.write(`${number}\n`);
}
