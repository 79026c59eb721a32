// Walks all commands, as completion lists them: each is of one kind, and each kind owes its options. A new command fails here
// until somebody says what it is.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { runPortolan } from './support/portolan.ts';

/** Run until they are stopped. */
const roles = ['demo', 'up', 'api', 'agent', 'dns', 'authority', 'peering', 'xds', 'proxy', 'dashboard'];
/** Only hold other commands. */
const groups = ['', 'peer', 'broker', 'sealing', 'test', 'federation', 'snapshot'];
/** Print a table or a report. */
const reports = [
  ...[
    'dig',
    'status',
    'explain',
    'explain connection',
    'plan',
    'doctor',
    'trace',
    'version',
    'test connectivity',
    'observe',
    'top',
  ],
  ...['peer list', 'peer status', 'peer services', 'peer routes', 'peer diff', 'xds status'],
  ...['snapshot list', 'snapshot inspect'],
];
const changes = [
  ...[
    'register',
    'deregister',
    'join',
    'leave',
    'export',
    'unexport',
    'drain',
    'shift',
    'federation create',
    'api rotate-ca',
  ],
  ...['broker init', 'broker token', 'broker accept', 'broker remove'],
  ...['peer token', 'peer add', 'peer export', 'peer retry', 'peer remove'],
  ...['install', 'upgrade', 'uninstall'],
];
/** Neither, with the reason. */
const others: Readonly<Record<string, string>> = {
  completion: 'prints a script',
  coredns: 'shows the change of a ConfigMap or writes it, and is done when it ends',
  'dashboard token': 'prints tokens of an account that is there when it ends',
  'federation kubeconfig': 'prints a kubeconfig of an account that is there when it ends',
  'peer bundle': 'prints certificates in PEM',
  'bug-report': 'writes one archive and is done when it ends',
  'xds bootstrap': 'prints the configuration of an Envoy',
  'xds drain': 'acts on one running Envoy, and is done when it ends',
  'xds renew': 'writes certificates to files, and runs on if asked to',
  'sealing show': 'prints fingerprints, to compare by eye',
  'sealing rotate': 'asks the agent, which makes new keys within two minutes',
  'sealing trust': 'writes one fingerprint and is done when it ends',
  'snapshot save': 'writes one file and is done when it ends',
  'api migrate': 'copies the objects of a home that does not run',
  'snapshot restore': 'changes the folder of a home that does not run',
  'demo break': 'acts on the running demo at once',
  'demo heal': 'acts on the running demo at once',
};
/** Take a secret: by standard input or a file, not only in the arguments, which others can read. */
const secrets = {
  ...{ join: '--token-file', 'peer add': '--token-file' },
  ...{ 'snapshot save': '--key-file', 'snapshot inspect': '--key-file', 'snapshot restore': '--key-file' },
};

const options = new Map<string, readonly string[]>();

beforeAll(async () => {
  const { code, out } = await runPortolan(['completion', 'bash']);
  expect(code).toBe(0);
  for (const [, path = '', words = ''] of out.matchAll(/^ {4}'(.*)'\) words='(.*)' ;;$/gm))
    options.set(path, words.split(' '));
});

describe('command tree', () => {
  test('all commands -> each is of one kind', () => {
    const known = [...roles, ...groups, ...reports, ...changes, ...Object.keys(others)];
    expect([...options.keys()].filter((path) => !known.includes(path))).toEqual([]);
    expect(new Set(known).size).toBe(known.length);
  });

  test('commands that report -> -o json|yaml|wide|name, by one definition', () => {
    for (const path of reports.filter((one) => options.has(one))) expect(options.get(path), path).toContain('--output');
    const folder = fileURLToPath(new URL('../src/cli/', import.meta.url));
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /(?<!\.test)\.ts$/.test(name),
    );
    const defining = files.filter((name) => readFileSync(join(folder, name), 'utf8').includes('-o, --output'));
    expect(defining).toEqual(['table.ts']);
    // Colours are for terminals only; there are none at all.
    const coloured = files.filter((name) => /\\x1b|\\u001b|styleText/.test(readFileSync(join(folder, name), 'utf8')));
    expect(coloured).toEqual([]);
  });

  test('commands that change something -> --wait and --timeout', () => {
    for (const path of changes)
      expect(options.get(path), path).toEqual(expect.arrayContaining(['--wait', '--timeout']));
  });

  test('commands that take a secret -> from a file or standard input', async () => {
    for (const [path, option] of Object.entries(secrets)) {
      expect(options.get(path), path).toContain(option);
      expect((await runPortolan([...path.split(' '), '--help'])).out, path).toContain('- reads standard input');
    }
    const words = [...options.values()].flat();
    const named = words.filter((word) => /password|secret/.test(word) && !/-file$|-namespace$/.test(word));
    expect(named).toEqual([]);
  });
});
