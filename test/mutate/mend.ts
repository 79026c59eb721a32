// The text in a file that keeps one attack of the threat model out, and what becomes of it when it is switched off.

export interface Mend {
  readonly test: string;
  /** As the threat model has it. */
  readonly title: string;
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly was: string;
  readonly became: string;
  /** The tests of its file follow each other: all of them run. */
  readonly isInSequence?: true;
}
