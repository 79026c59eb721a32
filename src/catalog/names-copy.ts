// The copy of its names that a DNS server keeps on disk: found before it starts, answered from until everything has been
// read, and kept from then on.

import type { Log } from '../base/log.ts';
import type { Parts } from '../base/parts.ts';
import type { World } from '../base/world.ts';
import { CopyKeeper, type LoadedCopy, loadCopy } from './copy-keeper.ts';
import type { NameTable } from './name-table.ts';
import type { Zone } from './zones.ts';

export interface NamesCopy {
  readonly path: string;
  /** Whose names these are: `cluster east`, `federation world`. */
  readonly owner: string;
  /** What an earlier server left, if it is of use. */
  readonly loaded: LoadedCopy | undefined;
}

export interface FindCopyOptions {
  readonly world: Pick<World, 'clock' | 'disk'>;
  readonly log: Log;
  readonly directory: string;
  readonly owner: string;
  readonly maxAgeMs?: number;
}

/** After a day, addresses are likely to be somebody else's. */
const defaultMaxAgeMs = 24 * 3_600_000;

export async function findNamesCopy(options: FindCopyOptions): Promise<NamesCopy> {
  const { directory, owner, maxAgeMs = defaultMaxAgeMs } = options;
  const path = `${directory}/names`;
  return { path, owner, loaded: await loadCopy({ ...options, path, maxAgeMs }) };
}

/** The clusterset's zone as it was. */
export function clustersetZoneIn({ loaded }: NamesCopy): string | undefined {
  return loaded?.facts.zones.find(({ source }) => source === 'imports')?.name;
}

export interface KeepCopyOptions {
  readonly world: World;
  readonly log: Log;
  readonly copy: NamesCopy;
  readonly table: NameTable;
  readonly zones: () => readonly Zone[];
  readonly isWhole: () => boolean;
  whenSynced(): Promise<void>;
}

export function keepNamesCopy(options: KeepCopyOptions, parts: Parts): void {
  const { copy, table } = options;
  void options.whenSynced().then(() => table.dropOld());
  const keeper = new CopyKeeper({ ...options, ...copy });
  keeper.start();
  parts.add('copy of names', () => keeper.stop());
}
