// Mutants that change nothing a caller can see, each with its reason. They are not counted.

interface Equivalent {
  readonly file: string;
  /** The texts before and after, whatever their white space. */
  readonly was: string;
  readonly became: string;
  readonly reason: string;
}

const equivalents: readonly Equivalent[] = [];

export function reasonOfEquivalence(mutant: Pick<Equivalent, 'file' | 'was' | 'became'>): string | undefined {
  const isSame = (a: string, b: string) => a.replaceAll(/\s+/g, '') === b.replaceAll(/\s+/g, '');
  return equivalents.find(
    ({ file, was, became }) => file === mutant.file && isSame(was, mutant.was) && isSame(became, mutant.became),
  )?.reason;
}
