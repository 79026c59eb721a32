// A resolver that signs what it asks a federation's authority, as two processes and a real etcd: believed by its key alone.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { EtcdRecords } from '../src/catalog/etcd-records.ts';
import { askTcp, askUdp } from '../src/dns/testing/edge/client.ts';
import { type Home, startHome } from '../src/main/home.ts';
import { describeWith } from './support/counterparts.ts';
import { type DnsProcess, type EtcdProcess, startDnsProcess, startEtcd, until } from './support/dns-process.ts';
import { runPortolan } from './support/portolan.ts';

const world = createRealWorld();
const name = 'web.shop.world.svc.federation';

describeWith(['etcd'], 'resolver and authority with a TSIG key', () => {
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

  async function start(...args: string[]): Promise<DnsProcess> {
    const dns = await startDnsProcess(args);
    running.add(dns);
    await dns.whenReady();
    return dns;
  }

  const resolver = (...args: string[]) => {
    const stub = `world.svc.federation=127.0.0.1:${authority.port}`;
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
    const good = keyFile('good.key', 'east-key', '0123456789abcdef0123456789abcdef');
    authority = await start('--federation', 'world', '--etcd', etcd.url, '--peer-key', good);
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

  test.each([
    [
      ['--sign', 'world.svc.federation=nobody'],
      /--sign world\.svc\.federation=nobody: no file of --tsig-key has a key/,
    ],
    [['--tsig-key', '/nowhere.key'], /--tsig-key \/nowhere\.key: no such file/],
    [['--peer-key', '/dev/null', '--federation', 'world', '--etcd', 'http://127.0.0.1:1'], /want key "name" \{/],
  ])('flags %j -> refused with the reason', async (flags, why) => {
    const { code, err } = await runPortolan(['dns', '--cluster-id', 'east', '--kubeconfig', home.kubeconfig, ...flags]);
    expect(code).not.toBe(0);
    expect(err).toMatch(why);
  });
});
