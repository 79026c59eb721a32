// The house rules, held by a test: who imports whom, what simulation forbids, and what every folder and lock file owes.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { longFunctions, parameterLists } from '../scripts/functions.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

// Each room of src/ and the rooms it may import besides itself; the longest prefix decides, and a top room sees its own
// sub-rooms. `kinds/` and `rules/` of a subject are pure, so others may read them. `gen` is generated code.
const subjects = ['clusterset', 'federation', 'peering', 'external'];
const pureRooms = [...subjects.flatMap((subject) => [`${subject}/kinds`, `${subject}/rules`]), 'external/plugins'];
const mayImport: Record<string, readonly string[]> = {
  base: [],
  'kube/objects': ['base'],
  kube: ['base'],
  home: ['base', 'kube/objects', 'gen'],
  'home/store': ['base'],
  'home/schema': ['base', 'kube/objects'],
  addresses: ['base', 'kube'],
  endpoints: ['base', 'kube'],
  doctor: ['base', 'kube', 'addresses', ...pureRooms, 'clusterset/membership', 'clusterset/explain', 'peering/explain'],
  install: ['base', 'kube/objects', 'clusterset/kinds', 'clusterset/membership', 'clusterset/rules'],
  'clusterset/kinds': ['base', 'kube/objects'],
  'clusterset/rules': ['base', 'kube/objects', 'clusterset/kinds'],
  'clusterset/membership': ['base', 'kube/objects', 'clusterset/kinds', 'clusterset/rules'],
  'clusterset/members': ['base', 'kube', 'clusterset/kinds', 'clusterset/rules'],
  'clusterset/explain': [
    'base',
    'kube',
    'clusterset/kinds',
    'clusterset/rules',
    'clusterset/membership',
    'clusterset/members',
  ],
  'clusterset/copies': [
    'base',
    'kube',
    'addresses',
    'clusterset/kinds',
    'clusterset/rules',
    'clusterset/membership',
    'clusterset/members',
  ],
  'clusterset/controllers': [
    'base',
    'kube',
    'addresses',
    'clusterset/kinds',
    'clusterset/rules',
    'clusterset/membership',
    'clusterset/members',
    'clusterset/copies',
  ],
  clusterset: ['base', 'kube', 'addresses'],
  'federation/kinds': ['base', 'kube/objects'],
  'federation/rules': ['base', 'kube/objects', 'federation/kinds', 'clusterset/kinds', 'clusterset/rules'],
  federation: ['base', 'kube', 'clusterset/kinds', 'clusterset/rules', 'clusterset/members'],
  'peering/kinds': ['base', 'kube/objects'],
  'peering/rules': ['base', 'kube/objects', 'peering/kinds'],
  'peering/session': ['base', 'kube/objects', 'peering/kinds', 'peering/rules'],
  peering: ['base', 'kube', 'addresses', 'gen'],
  'external/kinds': ['base', 'kube/objects'],
  'external/plugins': ['base', 'kube/objects', 'external/kinds'],
  'external/rules': ['base', 'kube/objects', 'external/kinds', 'external/plugins'],
  external: ['base', 'kube', 'addresses'],
  catalog: ['base', 'kube', 'addresses', ...pureRooms],
  dns: ['base', 'catalog'],
  // What Envoys log is told as flows, in the form that node proxies tell of theirs.
  xds: ['base', 'kube', 'addresses', 'catalog', 'gen', 'proxy/flows', ...pureRooms],
  proxy: ['base', 'kube', 'catalog', ...pureRooms],
  cli: [
    'base',
    'kube',
    'addresses',
    'endpoints',
    ...pureRooms,
    'clusterset/membership',
    'clusterset/explain',
    'doctor',
    'install',
    'peering/explain',
    'dns/explain',
    'dns/config',
    'xds/identity',
    'proxy',
  ],
  dashboard: [
    'base',
    'kube',
    'addresses',
    ...pureRooms,
    'clusterset/membership',
    'clusterset/explain',
    'peering/explain',
    'dns/explain',
    'doctor',
    'proxy/flows',
  ],
  // The page runs in a browser: of the server it knows the shapes of what it is sent.
  'dashboard/pages': ['dashboard/wire'],
  'dashboard/wire': ['doctor', 'clusterset/explain', 'dns/explain'],
  gen: [],
};

// The order of the rooms inside a subject, lowest first: a room sees the ones before it, and those beside it on the same
// line of the list are strangers. `.` stands for the files of the subject's own folder.
const orders: Record<string, readonly (readonly string[])[]> = {
  home: [
    ['store', 'schema'],
    ['cel'],
    ['model'],
    ['messages'],
    ['encoding'],
    ['definitions', 'security'],
    ['snapshot'],
    ['kinds'],
    ['patches', 'fields'],
    ['verbs'],
    ['watch'],
    ['background'],
    ['quota'],
    ['discovery'],
    ['request'],
    ['edge'],
    ['.'],
  ],
  dns: [
    ['config', 'message'],
    ['metrics'],
    ['upstream'],
    ['stub-zones', 'local'],
    ['source'],
    ['zones'],
    ['handlers'],
    ['chain'],
    ['sockets'],
    ['explain'],
    ['.'],
  ],
  catalog: [['packed', 'lists'], ['facts', 'claims'], ['names'], ['outside', 'federation'], ['copy'], ['.']],
  clusterset: [
    ['kinds'],
    ['rules'],
    ['membership', 'members'],
    ['explain'],
    ['copies'],
    ['controllers'],
    ['agent', '.'],
  ],
  xds: [
    ['.', 'identity'],
    ['view', 'access-logs'],
    ['session'],
    ['clusterset', 'external'],
    ['peers', 'ingress', 'gateways'],
    ['sources'],
    ['status'],
    ['server'],
  ],
};

// Calls that every process must take from its World, and why they would spoil a replay.
const bans: readonly { readonly pattern: RegExp; readonly instead: string }[] = [
  { pattern: /\bDate\.now\(|\bnew Date\(\)/, instead: 'world.clock.wallMs()' },
  { pattern: /\bperformance\.now\(/, instead: 'world.clock.monotonicMs()' },
  { pattern: /\b(setTimeout|setInterval|setImmediate)\(/, instead: 'world.timers.after()' },
  { pattern: /\bMath\.random\(/, instead: 'world.random.float()' },
  { pattern: /\b(randomBytes|randomUUID|randomInt|getRandomValues)\(/, instead: 'world.random' },
  { pattern: /\b(crypto\.subtle|webcrypto)\b/, instead: 'an edge file' },
  { pattern: /\bAbortSignal\.timeout\(/, instead: 'world.timers and an AbortController' },
  { pattern: /(?<![.\w])fetch\(/, instead: 'world.network' },
  { pattern: /from 'node:(fs\/promises|zlib)'|\bfs\.promises\b/, instead: 'world.disk' },
  {
    pattern: /(?:[bB]ytes|[bB]uffer|[pP]acket|[dD]atagram|[pP]ayload|[dD]igest)\.slice\(/,
    instead: 'copyOf() or subarray()',
  },
  { pattern: /\.localeCompare\(|\.toLocale\w+\(/, instead: 'compare by code units' },
];

// Where the outside begins: sockets, threads, keys, the terminal.
const edges: readonly RegExp[] = [
  /^src\/base\/real\//,
  /^src\/main(\/|\.ts$)/,
  /^src\/cli\//,
  /\/(server|transport|worker|edge|prober)(-[a-z-]+)?\.ts$/,
  /\/edge\//,
  /^src\/dashboard\/pages\//,
  /\.test\.ts$/,
];

const sources = filesUnder('src').filter((file) => /\.tsx?$/.test(file));

describe('house: who imports whom', () => {
  test.each(sources.filter((file) => !isTest(file) && file !== 'src/main.ts' && !file.startsWith('src/main/')))(
    '%s',
    (file) => {
      const room = roomOf(file);
      expect(room, `${file} is in no room of the import table: say in this test what it may see`).not.toBe('');
      for (const target of importsOf(file)) {
        const isFine = isAllowed(room, target);
        expect(isFine, `${file} imports ${target}; ${room}/ may see only ${mayImport[room]?.join(', ')}`).toBe(true);
      }
    },
  );
});

describe('house: rooms are layers', () => {
  const product = sources.filter((file) => !isTest(file) && !file.startsWith('src/gen/'));
  const imports = product.flatMap((from) => importsOf(from).map((to) => ({ from, to })));

  test.each(Object.entries(orders))('src/%s: a room imports only rooms below it', (subject, order) => {
    const level = new Map(order.flatMap((rooms, index) => rooms.map((room) => [room, index] as const)));
    const upward = roomImports(subject, imports).filter(({ from, to }) => !(level.get(to)! < level.get(from)!));
    expect(upward.map(({ text }) => text)).toEqual([]);
  });

  test('no two rooms of one folder import each other, directly or by way of others', () => {
    const parents = new Set(product.flatMap((file) => foldersAbove(file)));
    const knots = [...parents].flatMap((parent) => {
      const edges = new Map<string, string[]>();
      for (const { from, to } of roomImports(parent, imports)) edges.set(from, [...(edges.get(from) ?? []), to]);
      return cyclesIn(edges).map((cycle) => `${parent === '' ? 'src' : `src/${parent}`}: ${cycle}`);
    });
    expect(knots).toEqual([]);
  });

  test('an import against the order and a knot would be found', () => {
    const made = [
      { from: 'src/home/store/a.ts', to: 'src/home/verbs/b.ts' },
      { from: 'src/home/verbs/b.ts', to: 'src/home/c.ts' },
      { from: 'src/home/c.ts', to: 'src/home/store/a.ts' },
      { from: 'src/home/c.ts', to: 'src/base/d.ts' },
    ];
    const rooms = roomImports('home', made).map(({ from, to }) => [from, to]);
    expect(rooms).toEqual([
      ['store', 'verbs'],
      ['verbs', '.'],
      ['.', 'store'],
    ]);
    expect(cyclesIn(new Map(rooms.map(([from = '', to = '']) => [from, [to]])))).toEqual([
      'store -> verbs -> . -> store',
    ]);
  });
});

describe('house: outside the edges nothing takes time, chance or I/O from the runtime', () => {
  test.each(sources.filter((file) => !edges.some((edge) => edge.test(file)) && !file.startsWith('src/gen/')))(
    '%s',
    (file) => {
      const code = withoutComments(read(file));
      for (const { pattern, instead } of bans) {
        expect(code, `${file} uses ${pattern.exec(code)?.[0]}; take ${instead}`).not.toMatch(pattern);
      }
      expect(code, `${file} has module-level state; give it to an instance`).not.toMatch(/^(export )?(let|var) /m);
    },
  );
});

// Importing its names loads undici with them, 14 MB in each thread.
test('house: node:http is imported for types alone; its functions are in base/real/node-http.ts', () => {
  const importing = sources.filter(
    (file) => !isTest(file) && /^import (?!type )[^;]*from 'node:http'/m.test(read(file)),
  );
  expect(importing).toEqual([]);
});

describe('house: every file and folder says what it promises', () => {
  test.each(sources.filter((file) => !isTest(file) && !file.startsWith('src/gen/')))(
    '%s starts with what it promises',
    (file) => {
      expect(read(file).startsWith('// '), `${file} has no header comment`).toBe(true);
    },
  );
  const folders = readdirSync(join(root, 'src')).filter((name) => statSync(join(root, 'src', name)).isDirectory());
  test.each(folders.filter((name) => filesUnder(`src/${name}`).length > 0))('src/%s has a README', (name) => {
    expect(existsSync(join(root, 'src', name, 'README.md')), `src/${name}/README.md is missing`).toBe(true);
  });
});

const filesPerFolderMax = 25;

describe('house: a folder can be read at a glance', () => {
  const folders = new Set(sources.map((file) => dirname(file)).filter((folder) => !folder.startsWith('src/gen')));
  test.each([...folders])(`%s has at most ${filesPerFolderMax} files of the product`, (folder) => {
    const files = sources.filter((file) => dirname(file) === folder && !isTest(file));
    expect(files.length, `${folder} has ${files.length} files; split it by subject`).toBeLessThanOrEqual(
      filesPerFolderMax,
    );
  });
});

test('house: no file imports itself by way of others, not even for a type', () => {
  const product = sources.filter((file) => !isTest(file) && !file.startsWith('src/gen/'));
  expect(cyclesIn(new Map(product.map((file) => [file, importsOf(file)])))).toEqual([]);
});

test('house: a cycle of imports would be found, whichever file it is entered by', () => {
  const graph = { a: ['b'], b: ['c', 'd'], c: [], d: ['b', 'e'], e: ['e'] };
  expect(cyclesIn(new Map(Object.entries(graph)))).toEqual(['b -> d -> b', 'e -> e']);
});

test('house: the command line loads no code of a command before the command is used', () => {
  const loaded = new Set(['src/main.ts']);
  for (const file of loaded) {
    const code = withoutComments(read(file));
    for (const [, path = ''] of code.matchAll(/^(?:import|export)(?! type)[^;]*?from '(\.[^']*)'/gm))
      loaded.add(relative(root, resolve(dirname(join(root, file)), path)));
  }
  expect(loaded).toContain('src/cli/verbs.ts');
  expect([...loaded].filter((file) => !/^src\/(main\.ts|base\/|kube\/objects\/|cli\/[a-z-]+\.ts)/.test(file))).toEqual(
    [],
  );
  expect(loaded.size).toBeLessThan(15);
});

// What is longer than 80 lines is split by what it does: this number only shrinks.
const longFunctionsMax = 10;

test('house: functions are short, and take few things', { timeout: 60_000 }, () => {
  const product = sources.filter((file) => !isTest(file) && !file.startsWith('src/gen/'));
  const long = product.flatMap((file) => longFunctions(file, read(file))).map(({ text }) => text);
  expect(long.length, `functions over 80 lines:\n${long.join('\n')}`).toBeLessThanOrEqual(longFunctionsMax);
  // DNS messages are written without an object for each record.
  const lists = product.flatMap((file) => parameterLists(file, read(file)));
  expect(lists.filter((text) => !/src\/dns\/(message\/answer|chain\/responder)\.ts/.test(text))).toEqual([]);
});

test('house: a long function and a long list of parameters would be found', () => {
  const body = '\n'.repeat(80);
  expect(longFunctions('a.ts', `function long() {${body}}\nclass A { short() {} }`)).toEqual([
    { lines: 81, text: '81 a.ts long' },
  ]);
  expect(parameterLists('a.ts', 'const many = (a, b, c, d, e, f, g) => a;')).toEqual(['7 a.ts many']);
});

describe('house: comments and READMEs of src/ name files that are there', () => {
  const readmes = filesUnder('src').filter((file) => file.endsWith('README.md'));
  const texts = [...sources.filter((file) => !file.startsWith('src/gen/') && !isTest(file)), ...readmes];
  const names = new Set(
    [...filesUnder('src'), ...filesUnder('test'), ...filesUnder('sim'), ...filesUnder('scripts')].flatMap(endingsOf),
  );
  test.each(texts)('%s', (file) => {
    expect(namedFiles(file, read(file)).filter((name) => !names.has(name))).toEqual([]);
  });

  test('a file that has moved would be found', () => {
    expect(namedFiles('a.ts', "// See gone.ts, and rules/gone-too.ts.\nconst a = 'b.ts';")).toEqual([
      'gone.ts',
      'rules/gone-too.ts',
    ]);
  });
});

test('house: the lock file names no download addresses', () => {
  expect(read('package-lock.json')).not.toMatch(/"resolved":/);
});

test('house: the import table itself is enforced -> a forbidden import would be named', () => {
  expect(isAllowed('home/store', 'src/home/verbs/get.ts')).toBe(false);
  expect(isAllowed('catalog', 'src/peering/consumer/addresses.ts')).toBe(false);
  expect(importsOf('src/house.test.ts')).toEqual([]);
  expect(importsOf('src/base/world.ts')).toEqual(['src/base/http.ts']);
});

function importsOf(file: string): string[] {
  const pattern = /(?:from|import)\s*\(?\s*'(\.[^']*)'/g;
  return [...withoutComments(read(file)).matchAll(pattern)]
    .map((match) => relative(root, resolve(dirname(join(root, file)), match[1] ?? '')))
    .filter((target) => target.startsWith('src/'));
}

/** `src/a/b.ts` is named `b.ts`, `a/b.ts` or in full. */
function endingsOf(file: string): string[] {
  const parts = file.split('/');
  return parts.map((_part, at) => parts.slice(at).join('/'));
}

/** Source files that a README, or the comments of a source file, name. */
function namedFiles(file: string, text: string): string[] {
  const prose = file.endsWith('.md')
    ? [text]
    : text.matchAll(/(?<=^|\s)\/\/ .*$|\/\*\*[\s\S]*?\*\//gm).map(([one]) => one);
  return [...prose].flatMap((one) =>
    Array.from(one.matchAll(/(?<![\w./@*-])(?:[\w-]+\/)*[\w-]+\.tsx?\b/g), ([name]) => name),
  );
}

interface Import {
  readonly from: string;
  readonly to: string;
}

/** Imports between the rooms of one folder of src/, `` for src/ itself. */
function roomImports(folder: string, imports: readonly Import[]): (Import & { readonly text: string })[] {
  const start = folder === '' ? 'src/' : `src/${folder}/`;
  const roomIn = (file: string): string => {
    const [room = '', ...rest] = file.slice(start.length).split('/');
    return rest.length === 0 ? '.' : room;
  };
  return imports
    .filter(({ from, to }) => from.startsWith(start) && to.startsWith(start) && roomIn(from) !== roomIn(to))
    .map(({ from, to }) => ({ from: roomIn(from), to: roomIn(to), text: `${from} imports ${to}` }));
}

/** `a/b/c.ts` of src/ lies in ``, `a` and `a/b`. */
function foldersAbove(file: string): string[] {
  const parts = dirname(file).split('/').slice(1);
  return [...parts.keys(), parts.length].map((length) => parts.slice(0, length).join('/'));
}

/** Each cycle once, as the path that closes it. Imports of a path that is loaded when it is needed count as well. */
function cyclesIn(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    const start = path.indexOf(file);
    if (start >= 0) cycles.push([...path.slice(start), file].join(' -> '));
    if (start >= 0 || done.has(file)) return;
    path.push(file);
    for (const target of imports.get(file) ?? []) visit(target);
    path.pop();
    done.add(file);
  };
  for (const file of imports.keys()) visit(file);
  return cycles;
}

/** The room of the import table that a file lies in: the longest one that is part of its path. */
function roomOf(file: string): string {
  const rooms = Object.keys(mayImport).filter((room) => file.startsWith(`src/${room}/`));
  return rooms.sort((a, b) => b.length - a.length)[0] ?? '';
}

function isAllowed(room: string, target: string): boolean {
  const isOwn = roomOf(target) === room || (!room.includes('/') && target.startsWith(`src/${room}/`));
  return isOwn || (mayImport[room] ?? []).some((other) => target.startsWith(`src/${other}/`));
}

function isTest(file: string): boolean {
  return /\.test\.ts$|(^|\/)contract\.ts$|\/testing\//.test(file);
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

function withoutComments(code: string): string {
  return code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '');
}

function filesUnder(folder: string): string[] {
  const start = join(root, folder);
  if (!existsSync(start)) return [];
  return readdirSync(start, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}
