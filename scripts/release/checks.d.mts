export function releaseProblems(options: {
  readonly version: string;
  readonly texts: Readonly<Record<string, string>>;
  readonly isUnreleasedAllowed?: boolean;
}): string[];
export const checkedFiles: readonly string[];
export function sectionOf(changelog: string, heading: string): string;
