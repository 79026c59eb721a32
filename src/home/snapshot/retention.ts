// Which snapshots are kept and when the next one is due. Pure.
//
// The newest three stay, and of each earlier day its newest, as far as they take no more than four times the size of the
// store. The size counts as the largest among the store and the snapshots: after a large deletion by mistake the store is
// small, and the snapshots from before are the ones that are wanted.

export interface KeptSnapshot {
  readonly name: string;
  readonly takenMs: number;
  readonly revision: number;
  readonly sizeBytes: number;
}

const newestKept = 3;
const sizesMax = 4;
const dayMs = 24 * 3_600_000;

/** `20261116T135200Z-1234.snapshot`: when it was taken, and the revision of the store. */
export function snapshotFileName(takenMs: number, revision: number): string {
  return `${new Date(takenMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z-${revision}.snapshot`;
}

/** Newest first. Files of other names are not ours. */
export function snapshotsIn(files: readonly { readonly name: string; readonly sizeBytes: number }[]): KeptSnapshot[] {
  return files
    .flatMap(({ name, sizeBytes }) => {
      const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-(\d{1,16})\.snapshot$/.exec(name);
      if (match === null) return [];
      const [year, month, day, hour, minute, second, revision] = match.slice(1).map(Number) as number[];
      const takenMs = Date.UTC(year!, month! - 1, day, hour, minute, second);
      return [{ name, takenMs, revision: revision!, sizeBytes }];
    })
    .sort((a, b) => b.takenMs - a.takenMs || b.revision - a.revision);
}

/** The ones to remove; `snapshots` are newest first. */
export function excessSnapshots(snapshots: readonly KeptSnapshot[], storeBytes: number): KeptSnapshot[] {
  const largest = snapshots.reduce((most, { sizeBytes }) => Math.max(most, sizeBytes), storeBytes);
  const days = new Set(snapshots.slice(0, newestKept).map(dayOf));
  let keptBytes = 0;
  return snapshots.filter((one, index) => {
    const isWanted = index < newestKept || !days.has(dayOf(one));
    const isKept = isWanted && (index === 0 || keptBytes + one.sizeBytes <= sizesMax * largest);
    if (isKept) keptBytes += one.sizeBytes;
    days.add(dayOf(one));
    return !isKept;
  });
}

function dayOf({ takenMs }: KeptSnapshot): number {
  return Math.floor(takenMs / dayMs);
}
