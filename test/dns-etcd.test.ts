// A federation's authority on real etcds that freeze, and on one that wants a name and a password.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import packet from 'dns-packet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeAnswer, encodeQuestion, extendedErrorOf } from '../src/dns/testing/ask.ts';
import { makeAuthority } from '../src/dns/testing/edge/certs.ts';
import { askUdp, askUdpRaw } from '../src/dns/testing/edge/client.ts';
import { describeWith } from './support/counterparts.ts';
import { type DnsProcess, type EtcdProcess, startDnsProcess, startEtcd, until } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';
import { runPortolan } from './support/portolan.ts';

const name = 'web.shop.world.svc.federation';
const base64 = (text: string) => Buffer.from(text).toString('base64');

describeWith(['etcd'], 'an authority on etcd', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-etcd-'));
  const running: (DnsProcess | EtcdProcess)[] = [];
  let etcd: EtcdProcess;

  async function call(path: string, body: object, token = ''): Promise<unknown> {
    const headers = token === '' ? {} : { authorization: token };
    const response = await fetch(etcd.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  const put = (ip: string, token?: string) => {
    const value = `{"externalIP": "${ip}", "clusterIP": "10.0.0.1"}`;
    return call('/v3/kv/put', { key: base64('/world/shop/web/east'), value: base64(value) }, token);
  };

  async function start(...args: string[]): Promise<DnsProcess> {
    const dns = await startDnsProcess(['--federation', 'world', ...args]);
    running.push(dns);
    return dns;
  }

  /** `192.0.2.1`, and `(3)` behind it if it is marked as old. */
  async function ask(dns: DnsProcess): Promise<string> {
    const reply = packet.decode(await askUdpRaw(dns.target, encodeQuestion(`${name} A`, { edns: true })));
    const error = extendedErrorOf(reply);
    return describeAnswer(reply) + (error === undefined ? '' : ` (${error})`);
  }

  beforeAll(async () => {
    etcd = await startEtcd(`${directory}/etcd`);
    running.push(etcd);
    await put('192.0.2.1');
  });

  afterAll(async () => {
    etcd.signal('SIGCONT');
    for (const process of running) await process.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('it freezes -> answers go on and are marked as old, and it is logged; it thaws -> as it is now', async () => {
    const dns = await start('--etcd', etcd.url);
    await dns.whenReady();
    expect(await ask(dns)).toBe('192.0.2.1');
    etcd.signal('SIGSTOP');
    await until('marked as old', async () => (await ask(dns)) === '192.0.2.1 (3)');
    expect(dns.log()).toContain('etcd does not answer, keeping the records known');
    etcd.signal('SIGCONT');
    await put('192.0.2.2');
    await until('as it is now', async () => (await ask(dns)) === '192.0.2.2');
    expect(dns.log()).toContain('etcd answers again');
  });

  test('the federation in upper case, the suffix with a dot -> as if written in lower case without', async () => {
    const dns = await startDnsProcess(['--federation', 'World', '--suffix', 'Fed.Example.', '--etcd', etcd.url]);
    running.push(dns);
    await dns.whenReady();
    expect(await askUdp(dns.target, 'web.shop.world.svc.fed.example A')).toBe('192.0.2.2');
    expect(await askUdp(dns.target, 'world.svc.fed.example NS')).toBe('world.svc.fed.example');
    expect(await askUdp(dns.target, 'world.svc.fed.example A')).toBe('127.0.0.1');
    const explained = await (await fetch(`${dns.admin}/explain?name=web.shop.world.svc.fed.example`)).json();
    expect(explained).toMatchObject({ records: [{ sources: [{ kind: 'zone' }, { name: '/world/shop/web/east' }] }] });
  });

  test('two endpoints, the first dead -> the second is read', async () => {
    const dns = await start('--etcd', `http://127.0.0.1:${await freePort()},${etcd.url}`);
    await dns.whenReady();
    expect(await askUdp(dns.target, `${name} A`)).toBe('192.0.2.2');
  });

  test('https with a certificate of its own, which wants ours -> both by file; without them -> not read', async () => {
    const authority = makeAuthority('etcd authority');
    const server = authority.issue('etcd', { kind: 'server', hosts: ['127.0.0.1'] });
    const client = authority.issue('portolan', { kind: 'client' });
    const ca = authority.certificate;
    const options = { cert: server.certificate, key: server.key, ca, requestCert: true, rejectUnauthorized: true };
    // Stands before the etcd that is there.
    const front = createServer(options, (request, response) => {
      const { method, headers } = request;
      const behind = httpRequest(etcd.url + request.url, { method, headers }, (reply) => {
        response.writeHead(reply.statusCode ?? 500, reply.headers);
        reply.pipe(response);
      });
      response.on('close', () => behind.destroy());
      behind.on('error', () => response.destroy());
      request.pipe(behind);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
    const paths = { ca: join(directory, 'ca'), cert: join(directory, 'cert'), key: join(directory, 'key') };
    writeFileSync(paths.ca, ca);
    writeFileSync(paths.cert, client.certificate);
    writeFileSync(paths.key, client.key, { mode: 0o600 });
    const files = Object.entries(paths).flatMap(([flag, path]) => [`--etcd-${flag}`, path]);
    const dns = await start('--etcd', url, ...files);
    await dns.whenReady();
    expect(await ask(dns)).toBe('192.0.2.2');
    const stranger = await start('--etcd', url, '--etcd-ca', paths.ca);
    await until('not read', () => stranger.log().includes('etcd does not answer'));
    expect(await askUdp(stranger.target, `${name} A`)).toBe('SERVFAIL');
    await Promise.all([dns.stop(), stranger.stop()]);
    front.closeAllConnections();
    await new Promise((resolve) => front.close(resolve));
  });

  test('it wants a user -> given with a file, its records are read; without -> SERVFAIL and the reason in the log', async () => {
    const file = join(directory, 'password');
    writeFileSync(file, 'of a test\n');
    await call('/v3/auth/user/add', { name: 'root', password: 'of a test' });
    await call('/v3/auth/role/add', { name: 'root' });
    await call('/v3/auth/user/grant', { user: 'root', role: 'root' });
    await call('/v3/auth/enable', {});
    const dns = await start('--etcd', etcd.url, '--etcd-user', 'root', '--etcd-password-file', file);
    await dns.whenReady();
    expect(await ask(dns)).toBe('192.0.2.2');
    const { token } = (await call('/v3/auth/authenticate', { name: 'root', password: 'of a test' })) as {
      token: string;
    };
    await put('192.0.2.3', token);
    await until('followed', async () => (await ask(dns)) === '192.0.2.3');
    const stranger = await start('--etcd', etcd.url);
    await until('refused', () => stranger.log().includes('etcd does not answer'));
    expect(await askUdp(stranger.target, `${name} A`)).toBe('SERVFAIL');
  });

  test.each([
    [['--etcd', 'localhost:2379'], /--etcd localhost:2379: want http:\/\/ or https:\/\/ URLs/],
    [['--etcd', 'http://127.0.0.1:1', '--federation', 'no_label'], /--federation no_label: /],
    [
      ['--etcd', 'http://127.0.0.1:1', '--server-address', 'ns.example'],
      /--server-address ns\.example: want an address/,
    ],
    [['--etcd', 'http://127.0.0.1:1', '--etcd-user', 'x'], /want --etcd-password-file FILE too/],
    [['--etcd', 'http://127.0.0.1:1', '--etcd-cert', 'x'], /--etcd-cert: want --etcd-key FILE too/],
  ])('flags %j -> refused with the reason', async (flags, why) => {
    const { code, err } = await runPortolan([
      'authority',
      '--federation',
      'world',
      '--listen',
      '127.0.0.1:0',
      ...flags,
    ]);
    expect(code).not.toBe(0);
    expect(err).toMatch(why);
  });
});
