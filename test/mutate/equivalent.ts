// Mutants that change nothing a caller can see, each with its reason. They are not counted.

interface Equivalent {
  readonly file: string;
  /** The texts before and after, whatever their white space. */
  readonly was: string;
  readonly became: string;
  readonly reason: string;
}

const asker = 'src/dns/source/asker.ts';
const remembered = 'what is remembered is looked up again, with the same result';

const equivalents: readonly Equivalent[] = [
  {
    file: asker,
    was: 'remembered.set(hash, { payload, standpoint, version: places.version });',
    became: ';',
    reason: remembered,
  },
  { file: asker, was: 'payload.length !== length', became: 'true', reason: remembered },
  { file: asker, was: 'payload.length !== length', became: '((payload.length) === (length))', reason: remembered },
  {
    file: asker,
    was: 'payload[i] !== packet[at + i]',
    became: '((payload[i]) === (packet[at + i]))',
    reason: remembered,
  },
  {
    file: 'src/dns/source/trusted-servers.ts',
    was: 'false',
    became: 'true',
    reason: 'the constructor replaces the filter before anybody asks it',
  },
];

export function reasonOfEquivalence(mutant: Pick<Equivalent, 'file' | 'was' | 'became'>): string | undefined {
  const isSame = (a: string, b: string) => a.replaceAll(/\s+/g, '') === b.replaceAll(/\s+/g, '');
  return equivalents.find(
    ({ file, was, became }) => file === mutant.file && isSame(was, mutant.was) && isSame(became, mutant.became),
  )?.reason;
}
