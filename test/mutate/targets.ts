// The files whose faults fast tests must find, and the tests that are asked: the file's own test first, then these.

export interface Target {
  readonly name: string;
  /** Product files; tests and folders for testing are left out. */
  readonly files: readonly string[];
  readonly tests: readonly string[];
}

export const targets: readonly Target[] = [
  {
    name: 'addresses',
    files: ['src/addresses/*.ts'],
    tests: ['src/addresses/*.test.ts', 'sim/allocator.test.ts'],
  },
  {
    name: 'clusterset',
    files: ['src/clusterset/rules/**/*.ts'],
    tests: [
      'src/clusterset/rules/**/*.test.ts',
      'src/clusterset/explain/*.test.ts',
      'sim/scenarios/{conflict,derived-service,export,import,migration,odd-records}.test.ts',
    ],
  },
  {
    name: 'peering',
    files: ['src/peering/session/*.ts'],
    tests: ['src/peering/session/*.test.ts', 'src/peering/consumer/consumer-link.test.ts'],
  },
  {
    name: 'rbac',
    files: [
      'src/home/security/{rules,rbac-index,rbac-validation,escalation,impersonation,create-access,tokens,service-accounts}.ts',
    ],
    tests: ['src/home/security/*.test.ts', 'src/home/kinds/*.test.ts', 'src/home/request/*.test.ts'],
  },
  {
    name: 'dns',
    files: ['src/dns/zones/select.ts', 'src/dns/source/*.ts', 'src/catalog/{locality,spread}.ts'],
    // Without those that open sockets: slow, and answers are chosen the same way without.
    tests: [
      'src/dns/!(connections|forward|fuzz|hostile-packets|loops|server|ten-clusters).test.ts',
      'src/dns/{explain,source}/*.test.ts',
      'src/catalog/{locality,spread}.test.ts',
    ],
  },
];
