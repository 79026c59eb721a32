// Certificate chains, good and bad, as data: each certificate by the lines of its openssl extension section, from the root
// down. The test makes them with openssl, and compares our verdict with that of `openssl verify`.

export interface ChainRow {
  readonly name: string;
  /** From the root to the leaf. */
  readonly chain: readonly CertificateRow[];
  /** Part of our reason; undefined for a good chain. */
  readonly wrong?: string;
  /** Refused here although openssl takes it. */
  readonly isStricter?: boolean;
  /** Days after issuing at which it is looked at; half a day if left out. */
  readonly atDays?: number;
}

export interface CertificateRow {
  readonly subject?: string;
  readonly extensions: readonly string[];
  /** Thirty if left out. */
  readonly days?: number;
  readonly key?: 'P-256' | 'RSA 1024' | 'RSA 2048';
  readonly hash?: 'sha1' | 'sha256';
  /** Signed by a key other than that of the certificate above it. */
  readonly isForged?: boolean;
}

const authority = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'];
const end = [
  'basicConstraints=critical,CA:FALSE',
  'keyUsage=critical,digitalSignature',
  'extendedKeyUsage=clientAuth,serverAuth',
  'subjectAltName=URI:spiffe://acme.example/mesh',
];
const root = { extensions: authority } satisfies CertificateRow;
const middle = root;
const leaf = { extensions: end } satisfies CertificateRow;
const ca = (...more: string[]): CertificateRow => ({ extensions: [...authority, ...more] });
const caOf = (basicConstraints: string): CertificateRow => ({
  extensions: [`basicConstraints=critical,${basicConstraints}`, authority[1] as string],
});
/** The usual leaf, with one of its lines in another form. */
const leafWith = (line: string): CertificateRow => ({
  extensions: [...end.filter((usual) => usual.split('=')[0] !== line.split('=')[0]), line],
});
const without = (row: CertificateRow, key: string): CertificateRow => ({
  extensions: row.extensions.filter((line) => !line.startsWith(key)),
});

export const chainRows: readonly ChainRow[] = [
  { name: 'a root and its leaf', chain: [root, leaf] },
  { name: 'an intermediate', chain: [root, middle, leaf] },
  { name: 'two intermediates', chain: [root, middle, middle, leaf] },
  { name: 'a path length that is just enough', chain: [caOf('CA:TRUE,pathlen:1'), caOf('CA:TRUE,pathlen:0'), leaf] },
  { name: 'a leaf that says nothing of purposes', chain: [root, without(leaf, 'extendedKeyUsage')] },
  { name: 'a leaf that says nothing of key usage', chain: [root, without(leaf, 'keyUsage')] },
  { name: 'a key for key agreement', chain: [root, leafWith('keyUsage=critical,keyAgreement')] },
  { name: 'an intermediate for clients', chain: [root, ca('extendedKeyUsage=clientAuth'), leaf] },
  { name: 'a URI that is permitted', chain: [ca('nameConstraints=critical,permitted;URI:acme.example'), leaf] },
  {
    name: 'a host that is permitted, a URI of which nothing is said',
    chain: [
      ca('nameConstraints=critical,permitted;DNS:acme.example'),
      leafWith('subjectAltName=URI:spiffe://acme.example/mesh,DNS:peering.acme.example'),
    ],
  },
  {
    name: 'an unknown extension that is not critical',
    chain: [root, { extensions: [...end, '1.2.3.4=ASN1:UTF8String:x'] }],
  },
  { name: 'a key of RSA 2048', chain: [root, { ...leaf, key: 'RSA 2048' }] },
  {
    name: 'a path length of the root that is too short',
    chain: [caOf('CA:TRUE,pathlen:0'), middle, leaf],
    wrong: 'path length',
  },
  {
    name: 'a path length of an intermediate that is too short',
    chain: [root, caOf('CA:TRUE,pathlen:0'), middle, leaf],
    wrong: 'path length',
  },
  { name: 'an intermediate that is no authority', chain: [root, caOf('CA:FALSE'), leaf], wrong: 'no authority' },
  { name: 'a leaf that issues another', chain: [root, leaf, leaf], wrong: 'does not lead' },
  {
    name: 'an intermediate that does not say that it is an authority',
    chain: [root, without(middle, 'basicConstraints'), leaf],
    wrong: 'no authority',
  },
  {
    name: 'an intermediate whose key may not sign certificates',
    chain: [root, { extensions: [authority[0] as string, 'keyUsage=critical,digitalSignature'] }, leaf],
    wrong: 'does not lead',
  },
  {
    name: 'a leaf for servers alone',
    chain: [root, leafWith('extendedKeyUsage=serverAuth')],
    wrong: 'not for clients',
  },
  {
    name: 'a leaf for any purpose, which TLS does not take',
    chain: [root, leafWith('extendedKeyUsage=anyExtendedKeyUsage')],
    wrong: 'not for clients',
  },
  {
    name: 'an intermediate for servers alone',
    chain: [root, ca('extendedKeyUsage=serverAuth'), leaf],
    wrong: 'not for clients',
  },
  {
    name: 'a key that may only encipher keys',
    chain: [root, leafWith('keyUsage=critical,keyEncipherment')],
    wrong: 'may not be used for TLS',
  },
  {
    name: 'a URI outside of what is permitted',
    chain: [ca('nameConstraints=critical,permitted;URI:other.example'), leaf],
    wrong: 'name constraints',
  },
  {
    name: 'a URI below a host that is permitted alone',
    chain: [ca('nameConstraints=critical,permitted;URI:example'), leaf],
    wrong: 'name constraints',
  },
  {
    name: 'a URI that an intermediate excludes',
    chain: [root, ca('nameConstraints=critical,excluded;URI:.example'), leaf],
    wrong: 'name constraints',
  },
  {
    name: 'a host outside of what is permitted',
    chain: [
      ca('nameConstraints=critical,permitted;DNS:acme.example'),
      leafWith('subjectAltName=URI:spiffe://acme.example/mesh,DNS:bank.example'),
    ],
    wrong: 'name constraints',
  },
  {
    name: 'an address that is excluded',
    chain: [
      ca('nameConstraints=critical,excluded;IP:10.0.0.0/255.0.0.0'),
      leafWith('subjectAltName=URI:spiffe://acme.example/mesh,IP:10.1.2.3'),
    ],
    wrong: 'name constraints',
  },
  {
    name: 'an e-mail address outside of what is permitted',
    chain: [
      ca('nameConstraints=critical,permitted;email:acme.example'),
      leafWith('subjectAltName=URI:spiffe://acme.example/mesh,email:a@bank.example'),
    ],
    wrong: 'name constraints',
  },
  {
    name: 'a subject that looks like a host outside of what is permitted',
    chain: [ca('nameConstraints=critical,permitted;DNS:acme.example'), { ...leaf, subject: '/CN=login.bank.example' }],
    wrong: 'name constraints',
  },
  { name: 'a leaf that has expired', chain: [root, { ...leaf, days: 1 }], atDays: 2, wrong: 'expired' },
  {
    name: 'an intermediate that has expired',
    chain: [root, { ...middle, days: 1 }, leaf],
    atDays: 2,
    wrong: 'expired',
  },
  { name: 'a root that has expired', chain: [{ ...root, days: 1 }, leaf], atDays: 2, wrong: 'expired' },
  { name: 'a leaf of the future', chain: [root, leaf], atDays: -1, wrong: 'not valid before' },
  {
    name: 'an unknown critical extension',
    chain: [root, { extensions: [...end, '1.2.3.4=critical,ASN1:UTF8String:x'] }],
    wrong: 'unknown critical extension',
  },
  {
    name: 'a signature of somebody else in the name of the root',
    chain: [root, { ...leaf, isForged: true }],
    wrong: 'does not lead',
  },
  {
    name: 'a signature of somebody else in the name of an intermediate',
    chain: [root, middle, { ...leaf, isForged: true }],
    wrong: 'does not lead',
  },
  { name: 'a key of RSA 1024', chain: [root, { ...leaf, key: 'RSA 1024' }], wrong: 'too short' },
  {
    name: 'an intermediate with a key of RSA 1024',
    chain: [root, { ...middle, key: 'RSA 1024' }, leaf],
    wrong: 'too short',
  },
  {
    name: 'an authority at the end of the chain',
    chain: [root, { extensions: ['basicConstraints=critical,CA:TRUE', ...end.slice(1)] }],
    wrong: 'an authority, which is no end of TLS',
    isStricter: true,
  },
  { name: 'a signature with SHA-1', chain: [root, { ...leaf, hash: 'sha1' }], wrong: 'broken hash' },
];
