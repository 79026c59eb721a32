// The zone of a federation on real secondaries: `portolan authority --secondary` with BIND and Knot, signed by TSIG. They take
// the whole zone, hear of changes, and nobody else may have it.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { EtcdRecords } from '../src/federation/records/etcd-records.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { type DnsProcess, type EtcdProcess, startDnsProcess, startEtcd, until } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';

const world = createRealWorld();
const zone = 'world.svc.federation';
const secret = randomBytes(32).toString('base64');
const services = 300;

describeWith(['etcd', 'named', 'knotd', 'dig'], 'the zone of a federation on secondaries', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-transfer-'));
  const running: ChildProcess[] = [];
  let etcd: EtcdProcess;
  let records: EtcdRecords;
  let authority: DnsProcess;
  let bindPort: number;
  let knotPort: number;

  const put = (service: string, external: string) =>
    records.put(`/world/shop/${service}/east`, JSON.stringify({ externalIP: external, clusterIP: '10.0.0.1' }));

  beforeAll(async () => {
    [bindPort, knotPort] = [await freePort(), await freePort()];
    etcd = await startEtcd(`${directory}/etcd`);
    const transport = world.network.http({ server: etcd.url });
    records = new EtcdRecords({ transports: [transport], world, log: silentLog, federation: 'world' });
    await Promise.all(Array.from({ length: services }, (_, i) => put(`web-${i}`, `192.0.2.${i % 250}`)));
    const key = join(directory, 'key');
    writeFileSync(key, `key "transfer" { algorithm hmac-sha256; secret "${secret}"; };`);
    const secondaries = ['--secondary', `127.0.0.1:${bindPort}`, `127.0.0.1:${knotPort}`, '--transfer-key', key];
    const federation = ['--federation', 'world', '--etcd', etcd.url, '--server-address', '192.0.2.53'];
    authority = await startDnsProcess([...federation, ...secondaries, '--workers', '2']);
    await authority.whenReady();
    running.push(startBind(), startKnot());
  });

  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await authority.stop('SIGKILL');
    await etcd.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function startBind(): ChildProcess {
    const home = join(directory, 'bind');
    mkdirSync(home);
    writeFileSync(
      join(home, 'named.conf'),
      `options { directory "${home}"; listen-on port ${bindPort} { 127.0.0.1; }; listen-on-v6 { none; };
 pid-file "${home}/named.pid"; session-keyfile "${home}/session.key"; recursion no; dnssec-validation no; };
controls { };
key "transfer" { algorithm hmac-sha256; secret "${secret}"; };
zone "${zone}" { type secondary; file "zone"; masterfile-format text; primaries { 127.0.0.1 port ${authority.port} key transfer; }; };
`,
    );
    return spawn(pathOf('named')!, ['-g', '-c', join(home, 'named.conf')], { stdio: 'ignore' });
  }

  function startKnot(): ChildProcess {
    const home = join(directory, 'knot');
    mkdirSync(home);
    writeFileSync(
      join(home, 'knot.conf'),
      `server:
  rundir: "${home}"
  listen: 127.0.0.1@${knotPort}
database:
  storage: "${home}"
key:
  - id: transfer
    algorithm: hmac-sha256
    secret: ${secret}
remote:
  - id: primary
    address: 127.0.0.1@${authority.port}
    key: transfer
acl:
  - id: notify
    address: 127.0.0.1
    key: transfer
    action: notify
zone:
  - domain: ${zone}
    storage: "${home}"
    master: primary
    acl: notify
`,
    );
    return spawn(pathOf('knotd')!, ['-c', join(home, 'knot.conf')], { stdio: 'ignore' });
  }

  function dig(port: number, ...question: string[]): string[] {
    try {
      const args = ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', '+time=2', ...question];
      const output = execFileSync(pathOf('dig')!, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
      return output.split('\n').filter((line) => line !== '' && !line.startsWith(';'));
    } catch {
      return [];
    }
  }

  const named = (service: string) => `${service}.shop.${zone}`;
  const both = (...question: string[]) => [bindPort, knotPort].map((port) => dig(port, ...question).join());
  const everywhere = (text: string) => [text, text].join(' and ');
  const arrives = (text: string, ...question: string[]) =>
    until(`${question.join(' ')} is ${text}`, () => both(...question).join(' and ') === everywhere(text));

  test('BIND and Knot -> have the whole zone, the last name and the fixed ones', async () => {
    await arrives('192.0.2.49', named(`web-${services - 1}`), 'A');
    await arrives('192.0.2.0', `east.${named('web-0')}`, 'A');
    expect(both(zone, 'NS')).toEqual([`${zone}.`, `${zone}.`]);
    expect(both(zone, 'A')).toEqual(['192.0.2.53', '192.0.2.53']);
    const [serial] = dig(authority.port, zone, 'SOA').map((text) => text.split(' ')[2]!);
    await until('the same serial', () => both(zone, 'SOA').every((text) => text.split(' ')[2] === serial));
  });

  test('services that come, change and go -> arrive by NOTIFY, long before a refresh', async () => {
    await put('late', '192.0.2.251');
    await arrives('192.0.2.251', named('late'), 'A');
    await put('late', '192.0.2.252');
    await arrives('192.0.2.252', named('late'), 'A');
    await records.remove('/world/shop/late/east');
    await arrives('', named('late'), 'A');
  });

  test('a secondary that is away -> is said, and told when it is back', async () => {
    const bind = running.shift()!;
    bind.kill('SIGKILL');
    await put('meanwhile', '192.0.2.253');
    const readyz = async () => (await fetch(`${authority.admin}/readyz`)).text();
    await until('it is said', async () => (await readyz()).includes(`127.0.0.1:${bindPort}`));
    rmSync(join(directory, 'bind'), { recursive: true });
    running.unshift(startBind());
    await until('BIND has it', () => dig(bindPort, named('meanwhile'), 'A').join() === '192.0.2.253');
    await until('nothing is said', async () => !(await readyz()).includes('127.0.0.1'));
  });

  test('a transfer without the key, with another one, by UDP -> refused; with the key -> signed to the last message', async () => {
    const key = `hmac-sha256:transfer:${secret}`;
    const full = (...flags: string[]) => {
      const args = ['@127.0.0.1', '-p', String(authority.port), '+tries=1', '+time=5', ...flags, zone, 'AXFR'];
      return execFileSync(pathOf('dig')!, args, { encoding: 'utf8' });
    };
    expect(full()).toContain('Transfer failed');
    expect(full('-y', `hmac-sha256:transfer:${randomBytes(32).toString('base64')}`)).toContain('Transfer failed');
    const text = full('-y', key);
    const names = text.split('\n').filter((line) => /\sIN\s+A\s/.test(line));
    expect(names).toHaveLength(2 * (services + 1) + 1);
    expect(text).toMatch(/XFR size: \d+ records \(messages [2-9]/);
    expect(text).not.toMatch(/tsig verify failure|10\.0\.0\.1\b/i);
    // Its first and last record.
    expect(text.match(/\sIN\s+SOA\s/g)).toHaveLength(2);
  });

  test('IXFR -> the whole zone to an old copy, one SOA to a present one', () => {
    const key = `hmac-sha256:transfer:${secret}`;
    expect(dig(authority.port, '-y', key, zone, 'IXFR=1').length).toBeGreaterThan(600);
    const [serial = ''] = dig(authority.port, zone, 'SOA').map((text) => text.split(' ')[2]!);
    expect(dig(authority.port, '-y', key, '+tcp', zone, `IXFR=${serial}`)).toHaveLength(1);
  });
});
