// A resolver that signs its queries to a federation's authority, or asks over TLS, as two processes and a real etcd:
// trusted by its key or its certificate alone.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { makeAuthority } from '../src/dns/testing/edge/certs.ts';
import { askTcp, askUdp } from '../src/dns/testing/edge/client.ts';
import { EtcdRecords } from '../src/federation/records/etcd-records.ts';
import { type Home, startHome } from '../src/main/home/part.ts';
import { describeWith } from './support/counterparts.ts';
import { type DnsProcess, type EtcdProcess, startDnsProcess, startEtcd, until } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';
import { runPortolan } from './support/portolan.ts';

const world = createRealWorld();
const name = 'web.shop.world.svc.federation';

describeWith(['etcd'], 'resolver and authority with a TSIG key, or over TLS', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-tsig-'));
  const running = new Set<DnsProcess>();
  let etcd: EtcdProcess;
  let home: Home;
  let authority: DnsProcess;

  const keyFile = (file: string, key: string, secret: string) => {
    const path = join(directory, file);
    const base64 = Buffer.from(secret).toString('base64');
    writeFileSync(path, `# made for a test\nkey "${key}" {\n\talgorithm hmac-sha256;\n\tsecret "${base64}";\n};\n`);
    return path;
  };

  const ca = makeAuthority('dns authority');
  const pem = (file: string) => join(directory, `${file}.pem`);
  const named = (name: string, { certificate, key }: { certificate: string; key: string }) => ({
    [`${name}.crt`]: certificate,
    [`${name}.key`]: key,
  });
  const overTls = (who: string, name = 'ns.world.example', authorities = 'ca') => {
    const files = [
      '--zone-tls-ca',
      pem(authorities),
      '--zone-tls-cert',
      pem(`${who}.crt`),
      '--zone-tls-key',
      pem(`${who}.key`),
    ];
    return [...files, '--zone-tls', `world.svc.federation=${name}`];
  };

  async function start(...args: string[]): Promise<DnsProcess> {
    const dns = await startDnsProcess(args);
    running.add(dns);
    await dns.whenReady();
    return dns;
  }

  const resolver = (...args: string[]) => {
    const port = args.includes('--zone-tls') ? authority.tlsPort : authority.port;
    const stub = `world.svc.federation=127.0.0.1:${port}`;
    return start('--cluster-id', 'east', '--kubeconfig', home.kubeconfig, '--stub', stub, ...args);
  };

  beforeAll(async () => {
    etcd = await startEtcd(`${directory}/etcd`);
    const listen = { host: '127.0.0.1', port: 0 };
    home = await startHome({ world, log: silentLog, directory: `${directory}/home`, listen });
    const transport = world.network.http({ server: etcd.url });
    const records = new EtcdRecords({ transports: [transport], world, log: silentLog, federation: 'world' });
    await records.put('/world/shop/web/east', '{"externalIP": "192.0.2.1", "clusterIP": "10.0.0.1"}');
    await records.put('/world/shop/web/west', '{"externalIP": "192.0.2.2", "clusterIP": "10.0.0.2"}');
    transport.close();
    const files = {
      ca: ca.certificate,
      ...named('authority', ca.issue('authority', { kind: 'server', hosts: ['ns.world.example'] })),
      ...named('east', ca.issue('resolver-east', { kind: 'client' })),
      ...named('nobody', ca.issue('nobody', { kind: 'client' })),
      'other-ca': makeAuthority('another').certificate,
    };
    for (const [file, text] of Object.entries(files)) writeFileSync(pem(file), text, { mode: 0o600 });
    const good = keyFile('good.key', 'east-key', '0123456789abcdef0123456789abcdef');
    const tls = ['--tls-port', '0', '--tls-cert', pem('authority.crt'), '--tls-key', pem('authority.key')];
    const believed = ['--trusted-key', good, '--tls-client-ca', pem('ca'), '--trusted-identity', 'resolver-east'];
    authority = await start('--federation', 'world', '--etcd', etcd.url, ...tls, ...believed);
  });

  afterAll(async () => {
    await Promise.all([...running].map((dns) => dns.stop('SIGKILL')));
    await home.stop();
    await etcd.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('the resolver signs with a key the authority knows -> believed: its own cluster IP first', async () => {
    const dns = await resolver('--tsig-key', join(directory, 'good.key'), '--sign', 'world.svc.federation=east-key');
    expect(await askUdp(dns.target, `${name} A`)).toBe('10.0.0.1, 192.0.2.2');
    expect(await askTcp(dns.target, `${name} A`)).toBe('10.0.0.1, 192.0.2.2');
  });

  test('the same without a signature -> not believed: external addresses only', async () => {
    const dns = await resolver();
    expect(await askUdp(dns.target, `${name} A`)).toBe('192.0.2.1, 192.0.2.2');
  });

  test('a key with another secret -> refused there, SERVFAIL here', async () => {
    const bad = keyFile('bad.key', 'east-key', 'another secret of thirty-two byte');
    const dns = await resolver('--tsig-key', bad, '--sign', 'world.svc.federation=east-key');
    await until('refused', async () => (await askUdp(dns.target, `${name} A`)) === 'SERVFAIL');
  });

  test('the resolver asks over TLS and shows a listed certificate -> believed, also by many queries at once', async () => {
    const dns = await resolver(...overTls('east'), '--workers', '2');
    expect(await askUdp(dns.target, `${name} A`)).toBe('10.0.0.1, 192.0.2.2');
    const names = Array.from({ length: 200 }, (_, i) => `n${i}.shop.world.svc.federation A`);
    const answers = await Promise.all(names.map((each) => askUdp(dns.target, each)));
    expect(new Set(answers)).toEqual(new Set(['NXDOMAIN']));
  });

  test('the same with a certificate that is not listed -> not believed', async () => {
    const dns = await resolver(...overTls('nobody'));
    expect(await askUdp(dns.target, `${name} A`)).toBe('192.0.2.1, 192.0.2.2');
  });

  test.each([
    ['of another authority', overTls('east', 'ns.world.example', 'other-ca')],
    ['for another name', overTls('east', 'ns.other.example')],
  ])('the server shows a certificate %s -> not asked, SERVFAIL', async (_what, flags) => {
    const dns = await resolver(...flags);
    expect(await askUdp(dns.target, `${name} A`)).toBe('SERVFAIL');
  });

  test('the authority is started anew -> the resolver opens another connection', async () => {
    const [host, port] = ['127.0.0.1', await freePort()];
    const tls = ['--tls-port', String(port), '--tls-cert', pem('authority.crt'), '--tls-key', pem('authority.key')];
    const flags = ['--federation', 'world', '--etcd', etcd.url, ...tls, '--tls-client-ca', pem('ca')];
    const first = await start(...flags, '--trusted-identity', 'resolver-east');
    const stub = ['--stub', `world.svc.federation=${host}:${port}`];
    const dns = await start('--cluster-id', 'east', '--kubeconfig', home.kubeconfig, ...stub, ...overTls('east'));
    expect(await askUdp(dns.target, `${name} A`)).toBe('10.0.0.1, 192.0.2.2');
    await first.stop();
    await start(...flags, '--trusted-identity', 'resolver-east');
    await until('answered', async () => (await askUdp(dns.target, `new.${name} A`)) === 'NXDOMAIN');
  });

  test.each([
    [['--zone-tls', 'world.svc.federation'], /--zone-tls world\.svc\.federation: want ZONE=NAME/],
    [['--zone-tls-cert', '/x'], /--zone-tls-cert: want --zone-tls-key FILE too/],
    [
      ['--sign', 'world.svc.federation=nobody'],
      /--sign world\.svc\.federation=nobody: no file of --tsig-key has a key/,
    ],
    [['--tsig-key', '/nowhere.key'], /--tsig-key \/nowhere\.key: no such file/],
  ])('flags %j -> refused with the reason', async (flags, why) => {
    const { code, err } = await runPortolan(['dns', '--cluster-id', 'east', '--kubeconfig', home.kubeconfig, ...flags]);
    expect(code).not.toBe(0);
    expect(err).toMatch(why);
  });

  test('an authority with a file of keys that has none -> refused with the reason', async () => {
    const flags = ['--trusted-key', '/dev/null', '--federation', 'world', '--etcd', 'http://127.0.0.1:1'];
    const { code, err } = await runPortolan(['authority', ...flags]);
    expect(code).not.toBe(0);
    expect(err).toMatch(/want key "name" \{/);
  });
});
