export function buildImage(options: {
  readonly architectures: readonly string[];
  readonly out: string;
  /** Only Debian packages of debian.lock.json. */
  readonly isLocked?: boolean;
  readonly log?: (text: string) => void;
}): Promise<Record<string, string>>;
