// A foreign owner as a process of its own, for another machine. Its argument is JSON: certificates, where to listen, and the
// service that it shares.

import { startForeignOwner } from '../foreign-peer/owner.ts';
import type { ForeignService } from '../foreign-peer/wire.ts';

export interface ForeignOwnerTask {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly service: ForeignService;
}

const task = JSON.parse(process.argv[2] ?? '{}') as ForeignOwnerTask;
const owner = await startForeignOwner(task);
owner.put(task.service);
process.stdout.write('ready\n');
