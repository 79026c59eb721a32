// `npm run check:coredns`: the Corefile of the guide, word for word, in a real CoreDNS in front of our resolver. Not among the
// tests, because building CoreDNS takes minutes and needs Go. Prints a line for each thing it has seen; ends with 1 at the
// first that is not so.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { findCoredns } from '../scripts/coredns.mjs';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { startDns } from '../src/dns/server.ts';
import { addImport, makeCatalog } from '../src/dns/testing/ask.ts';
import { askUdp } from '../src/dns/testing/edge/client.ts';
import { planChange, planRemoval } from '../src/install/coredns/cluster-dns.ts';
import { defaultZones, type StubKind, stubKinds, stubText } from '../src/install/coredns/stub-blocks.ts';
import { until } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';

const name = 'checkout.shop.svc.clusterset.local A';
const late = 'late.shop.svc.clusterset.local A';
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const found = findCoredns();
if (found.path === undefined) {
  console.log(`CoreDNS is not checked: ${found.why}`);
  process.exit(0);
}
const directory = mkdtempSync(join(tmpdir(), 'portolan-coredns-'));
const catalog = makeCatalog();
addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'] });
const listen = { hosts: ['127.0.0.1'], port: 0 };
const start = () => startDns({ world: createRealWorld(), log: silentLog, catalog, listen });
const servers = [await start(), await start()];
const port = await freePort();
const guide = readFileSync(new URL('../docs/guides/dns.md', import.meta.url), 'utf8');
const [ofCluster, ofNode] = [...guide.matchAll(/```corefile\n([^`]+)```/g)].map((block) => block[1]!);
for (const kind of stubKinds) await startsWith(kind);
await takesWritten();
const clusterHost = '127.0.0.1';
const nodeHost = '127.0.0.2';
const places = [
  [clusterHost, 'CoreDNS'],
  [nodeHost, 'NodeLocal DNSCache'],
] as const;
const running = [
  startCoredns('cluster', ofCluster!.replace('    errors\n', `    errors\n    bind ${clusterHost}\n`)),
  startCoredns('node', ofNode!.replace('bind 169.254.20.10', `bind ${nodeHost}`)),
];
const ask = (question = name, host = clusterHost) => askUdp({ host, port }, question).catch(() => 'nothing');

/** With the text of the guide but for addresses and ports. */
function startCoredns(what: string, text: string) {
  const resolvers = servers.map(({ udpPort }) => `127.0.0.1:${udpPort}`).join(' ');
  const file = join(directory, `${what}.Corefile`);
  writeFileSync(file, text.replaceAll(':53', `:${port}`).replace(/10\.96\.0\.20 10\.96\.0\.21/, resolvers));
  return spawn(found.path!, ['-conf', file], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** CoreDNS accepts the output of `portolan install --print-stub`: it starts with it. */
async function startsWith(kind: StubKind): Promise<void> {
  const text = stubText(kind, { addresses: ['192.0.2.1'], zones: defaultZones }, stringify);
  const block =
    kind === 'coredns' ? text : kind === 'aks' ? parse(text).data['portolan.server'] : JSON.parse(text).corefile;
  const file = join(directory, `${kind}.Corefile`);
  // The plugin kubernetes wants a cluster; ports and addresses here are free ones.
  const port = await freePort();
  const without = (block as string).replace(/ {4}kubernetes [^}]+}\n/, '').replaceAll(':53', `:${port}`);
  writeFileSync(
    file,
    without
      .replaceAll('    errors\n', '    errors\n    bind 127.0.0.1\n')
      .replace(/ {4}(ready|prometheus .*|health \{[^}]+\}|loop)\n/g, ''),
  );
  const child = spawn(found.path!, ['-conf', file], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (chunk) => (out += chunk));
  await until(`CoreDNS starts with the block for ${kind}`, () => /CoreDNS-\d/.test(out) || child.exitCode !== null);
  const isRunning = child.exitCode === null;
  child.kill('SIGKILL');
  if (!isRunning) throw new Error(`CoreDNS refuses the block for ${kind}`);
  console.log(`ok: the block for ${kind} is accepted`);
}

/** The Corefile that `portolan coredns` writes is read again while CoreDNS runs; taken out, the names are gone. */
async function takesWritten(): Promise<void> {
  const [own, other] = [await freePort(), makeCatalog()];
  addImport(other, 'shop/checkout', { ips: ['243.0.0.9'] });
  for (const source of ['services', 'imports'] as const) other.setSynced(source);
  const resolver = await startDns({ world: createRealWorld(), log: silentLog, catalog: other, listen });
  const file = join(directory, 'written.Corefile');
  const before = `.:${own} {\n    bind 127.0.0.1\n    errors\n    reload 2s 1s\n    template ANY ANY {\n        rcode REFUSED\n    }\n}\n`;
  const metadata = { namespace: 'kube-system', name: 'coredns' };
  const dns = {
    coredns: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: before } },
    custom: undefined,
  };
  const written = planChange(dns, { addresses: ['192.0.2.1'], zones: defaultZones }, 'coredns')!;
  const [removed] = planRemoval({ ...dns, coredns: written.object });
  writeFileSync(file, before);
  const child = spawn(found.path!, ['-conf', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  const answers = (expected: string) =>
    until(
      `CoreDNS answers ${expected}`,
      async () => (await askUdp({ host: '127.0.0.1', port: own }, name).catch(() => 'nothing')) === expected,
    );
  const put = (text: string) => writeFileSync(file, text.replaceAll('192.0.2.1', `127.0.0.1:${resolver.udpPort}`));
  try {
    await answers('REFUSED');
    put(written.after.replace('    errors\n    cache', '    bind 127.0.0.1\n    errors\n    cache'));
    await answers('243.0.0.9');
    console.log('ok: the Corefile that portolan coredns writes is read again, and answers');
    put(removed!.after);
    await answers('REFUSED');
    console.log('ok: the Corefile without it is the one before, and answers as before');
  } finally {
    child.kill('SIGKILL');
    await resolver.close();
  }
}

/** Waiting would hide what a cache remembers. */
async function seenAtOnce(what: string, expected: string, question = name): Promise<void> {
  for (const [host, where] of places) {
    const answer = await ask(question, host);
    if (answer !== expected) throw new Error(`${where}: ${what}: ${expected} expected, ${answer} found`);
    console.log(`ok: ${where}: ${what} -> ${answer}`);
  }
}

async function seen(what: string, expected: string, question?: string): Promise<void> {
  let last = '';
  for (const [host, where] of places) {
    await until(`${where}: ${what}: ${expected}`, async () => (last = await ask(question, host)) === expected);
    console.log(`ok: ${where}: ${what} -> ${last}`);
  }
}

try {
  await seen('nothing has been read yet', 'SERVFAIL');
  catalog.setSynced('services');
  catalog.setSynced('imports');
  await seenAtOnce('read, and the SERVFAIL before is not remembered', '243.0.0.7');
  await seen('no such name', 'NXDOMAIN', late);
  addImport(catalog, 'shop/late', { ips: ['243.0.0.9'] });
  await pause(6000);
  catalog.flush();
  await seenAtOnce('asked again after its TTL is over, now that it exists', '243.0.0.9', late);
  await servers[0]!.close();
  addImport(catalog, 'shop/cart', { ips: ['243.0.0.8'] });
  catalog.flush();
  await seen('one of the two is gone', '243.0.0.8', 'cart.shop.svc.clusterset.local A');
  await servers[1]!.close();
  await pause(6000);
  await seen('both are gone, and the TTL is over', '243.0.0.7');
} finally {
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(servers.map((server) => server.close()));
  rmSync(directory, { recursive: true, force: true });
}
