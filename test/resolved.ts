// `npm run check:resolved`: the configuration of the guide, word for word, in a real systemd-resolved in front of two of our
// resolvers and beside the server of a link, in namespaces of its own. Not among the tests: it needs root and a download.
// Prints a line for each thing it has seen; ends with 1 at the first that is not so.

import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import packet from 'dns-packet';
import { findResolved } from '../scripts/resolved.mjs';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { startDns } from '../src/dns/server.ts';
import { addImport, makeCatalog, syncAll } from '../src/dns/testing/ask.ts';
import { makeAuthority } from '../src/dns/testing/edge/certs.ts';
import { until } from './support/dns-process.ts';

const resolvers = ['10.96.0.20', '10.96.0.21'];
const linkServer = '10.96.0.53';
const ours = (service: string) => `${service}.shop.svc.clusterset.local`;
const [resolved] = process.argv.slice(2);
if (resolved === undefined) startInNamespaces();
else await check(resolved);

function startInNamespaces(): void {
  const found = findResolved();
  if (found.path === undefined) {
    console.log(`systemd-resolved is not checked: ${found.why}`);
    return;
  }
  const own = [process.execPath, fileURLToPath(import.meta.url), found.path];
  process.exitCode = spawnSync('unshare', ['--net', '--mount', ...own], { stdio: 'inherit' }).status ?? 1;
}

async function check(path: string): Promise<void> {
  const guide = readFileSync(new URL('../docs/guides/dns.md', import.meta.url), 'utf8');
  const configuration = /```ini\n([^`]+)```/.exec(guide)![1]!;
  prepareMachine();
  const authority = makeAuthority('authority of the resolvers');
  writeFileSync('/run/authority.pem', authority.certificate);
  const material = authority.issue('dns', { kind: 'server', hosts: ['dns.example'] });
  const catalog = makeCatalog();
  for (const [at, name] of ['checkout', 'cart', 'db', 'mail'].entries())
    addImport(catalog, `shop/${name}`, { ips: [`243.0.0.${at}`] });
  const tls = { port: 853, material };
  const start = (host: string) =>
    startDns({ world: createRealWorld(), log: silentLog, catalog, listen: { hosts: [host], port: 53, tls } });
  const servers = [await start(resolvers[0]!), await start(resolvers[1]!)];
  const link = startLinkServer();
  let daemon = startDaemon(path, configuration);
  try {
    await seen('nothing has been read yet', 'SERVFAIL', ours('checkout'));
    syncAll(catalog);
    await seen('read: the next name is answered at once', '243.0.0.1', ours('cart'));
    await seen('and the first one, when the SERVFAIL is forgotten after ten seconds', '243.0.0.0', ours('checkout'));
    await seen('no such name in our zone', 'NXDOMAIN', ours('none'));
    await seen('another name: ours refuse it, the server of the link knows it', '203.0.113.1', 'www.example.com');
    if (link.asked.some((name) => name.endsWith('.local'))) throw new Error(`the link was asked for ${link.asked}`);
    console.log('ok: the server of the link was never asked for a name in our zone');
    await servers[0]!.close();
    await seen('one of the two is gone', '243.0.0.3', ours('mail'));
    daemon.kill('SIGKILL');
    const secure = configuration.replace(/^DNS=.*$/m, `DNS=${resolvers[1]}#dns.example\nDNSOverTLS=yes`);
    daemon = startDaemon(path, secure);
    await seen('over TLS, with a certificate for that name', '243.0.0.2', ours('db'));
  } finally {
    daemon.kill('SIGKILL');
    link.close();
    await Promise.all(servers.map((server) => server.close()));
  }
}

/** A link with our addresses on it, an account for the daemon, and a folder of its own for what it keeps. */
function prepareMachine(): void {
  const run = (command: string) => execFileSync('sh', ['-ec', command], { stdio: ['ignore', 'ignore', 'inherit'] });
  run('ip link set lo up; ip link add up0 type veth peer name up1; ip link set up0 up; ip link set up1 up');
  for (const address of [...resolvers, linkServer]) run(`ip addr add ${address}/24 dev up0`);
  run('mount -t tmpfs tmpfs /run');
  for (const [file, line] of [
    ['passwd', 'systemd-resolve:x:64990:64990::/:/usr/sbin/nologin'],
    ['group', 'systemd-resolve:x:64990:'],
  ])
    run(`(cat /etc/${file}; echo '${line}') > /run/${file}; mount --bind /run/${file} /etc/${file}`);
  for (const folder of ['resolve', 'resolved.conf.d', 'netif/links'])
    mkdirSync(`/run/systemd/${folder}`, { recursive: true });
  run('chown 64990:64990 /run/systemd/resolve');
  const index = execFileSync('sh', ['-c', 'ip -o link show up0'], { encoding: 'utf8' }).split(':')[0];
  const state = ['ADMIN_STATE=configured', 'OPER_STATE=routable', `DNS=${linkServer}`, 'DNS_DEFAULT_ROUTE=yes'];
  // As systemd-networkd tells it.
  writeFileSync(`/run/systemd/netif/links/${index}`, `${state.join('\n')}\n`);
}

function startDaemon(path: string, configuration: string) {
  writeFileSync('/run/systemd/resolved.conf.d/portolan.conf', configuration);
  const env = { ...process.env, SSL_CERT_FILE: '/run/authority.pem', SYSTEMD_LOG_TARGET: 'console' };
  return spawn(path, { env, stdio: ['ignore', 'ignore', 'ignore'] });
}

/** Knows every name but those of ours. */
function startLinkServer() {
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (bytes, { port, address }) => {
    const { id, questions = [] } = packet.decode(bytes);
    const { name, type } = questions[0]!;
    asked.push(name);
    const answers =
      type === 'A' ? [{ type: 'A' as const, name, ttl: 60, class: 'IN' as const, data: '203.0.113.1' }] : [];
    socket.send(packet.encode({ type: 'response', id, questions, answers }), port, address);
  });
  socket.bind(53, linkServer);
  return { asked, close: () => socket.close() };
}

async function ask(name: string): Promise<string> {
  const args = ['@127.0.0.53', name, '+time=5', '+tries=1', '+noall', '+comments', '+answer'];
  const out = await promisify(execFile)('dig', args).then(
    ({ stdout }) => stdout,
    () => '',
  );
  return /\sA\s+([\d.]+)$/m.exec(out)?.[1] ?? /status: (\w+)/.exec(out)?.[1] ?? 'nothing';
}

async function seen(what: string, expected: string, name: string): Promise<void> {
  let last = '';
  await until(`${what}: ${expected}, but ${last}`, async () => (last = await ask(name)) === expected);
  console.log(`ok: ${what} -> ${last}`);
}
