interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
}

/** Of packages that were downloaded, beside those of the lock. */
export function lockProblems(options: {
  readonly found: readonly DebianPackage[];
  readonly locked: Readonly<Record<string, Omit<DebianPackage, 'name'>>>;
  readonly isLocked: boolean;
}): string[];
