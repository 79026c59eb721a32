// `portolan dns` is replaced on its own address while clients ask all the time: their questions are counted.

import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { encodeQuestion } from '../src/dns/testing/ask.ts';
import { createClient } from '../src/kube/client/client.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { type Home, startHome } from '../src/main/home/part.ts';
import { type DnsProcess, startDnsProcess } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';
import { portolan, runPortolan } from './support/portolan.ts';

const world = createRealWorld();
const directory = mkdtempSync(join(tmpdir(), 'portolan-restart-'));
const running = new Set<DnsProcess>();
let home: Home;

beforeAll(async () => {
  home = await startHome({ world, log: silentLog, directory, listen: { host: '127.0.0.1', port: 0 } });
  const client = createClient(home.transport, { world, userAgent: 'test' });
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const spec = { clusterIP: '10.96.7.7', ports: [{ port: 80, protocol: 'TCP' as const }] };
  const metadata = { name: 'web', namespace: 'shop' };
  await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec });
});

afterAll(async () => {
  await Promise.all([...running].map((dns) => dns.stop('SIGKILL')));
  await home.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(listen: string, ...args: string[]): Promise<DnsProcess> {
  const dns = await startDnsProcess(['--kubeconfig', home.kubeconfig, ...args], { listen });
  running.add(dns);
  return dns;
}

/** One that does not come so far that it listens. */
function spawnDns(args: readonly string[]): { readonly admin: Promise<string>; stop(): Promise<void> } {
  const child = spawn(portolan, ['dns', ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    admin: new Promise((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`portolan dns ended with ${code}`)));
      child.stdout.setEncoding('utf8').once('data', (text: string) => resolve(/^admin (\S+)$/m.exec(text)![1]!));
    }),
    stop: async () => {
      child.kill();
      await ended;
    },
  };
}

interface Tally {
  asked: number;
  answered: number;
  /** Answers other than the address. */
  wrong: number;
}

/** Asks every few milliseconds, each time from another port, until it is stopped. */
function askAllTheTime(port: number): { stop(): Promise<Tally> } {
  const tally: Tally = { asked: 0, answered: 0, wrong: 0 };
  const question = encodeQuestion('web.shop.svc.cluster.local A');
  let isOn = true;
  const asking = (async () => {
    while (isOn) {
      const socket = createSocket('udp4');
      socket.on('error', () => {});
      socket.on('message', (reply) => {
        tally.answered += 1;
        if (reply.subarray(-4).join('.') !== '10.96.7.7') tally.wrong += 1;
        socket.close();
      });
      socket.send(question, port, '127.0.0.1');
      tally.asked += 1;
      await pause(2);
    }
    await pause(1000);
  })();
  return {
    stop: async () => {
      isOn = false;
      await asking;
      return tally;
    },
  };
}

describe('portolan dns is replaced on one address', () => {
  test.each(['0', '2'])(
    '%s workers, --take-over, then the old one is stopped -> fewer than one question in a hundred is lost, none is answered wrongly',
    async (workers) => {
      const port = await freePort();
      const old = await start(`127.0.0.1:${port}`, '--workers', workers);
      await old.whenReady();
      const clients = askAllTheTime(port);
      await pause(300);
      const next = await start(`127.0.0.1:${port}`, '--workers', workers, '--take-over');
      await next.whenReady();
      await old.stop();
      await pause(500);
      const { asked, answered, wrong } = await clients.stop();
      expect(asked).toBeGreaterThan(200);
      // Packets may lie in a socket at the moment when it is closed.
      expect(asked - answered).toBeLessThan(asked / 100);
      expect(wrong).toBe(0);
    },
  );

  test('--take-over without a port, or beside a server that does not share -> refused, and the old one goes on', async () => {
    const none = await runPortolan(['dns', '--kubeconfig', home.kubeconfig, '--listen', '127.0.0.1:0', '--take-over']);
    expect([none.code, none.err]).toEqual([2, expect.stringContaining('--take-over: want the ports')]);
    const stranger = createSocket('udp4');
    await new Promise<void>((resolve) => stranger.bind(0, '127.0.0.1', resolve));
    const taken = `127.0.0.1:${stranger.address().port}`;
    const { code, err } = await runPortolan(['dns', '--kubeconfig', home.kubeconfig, '--listen', taken, '--take-over']);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining(`cannot listen on ${taken}: another process has this port`),
    ]);
    stranger.close();
  });

  test('while it reads its home -> /readyz says that it does not listen yet, and the old one answers', async () => {
    const port = await freePort();
    const old = await start(`127.0.0.1:${port}`);
    await old.whenReady();
    const kubeconfig = join(directory, 'away.kubeconfig');
    writeFileSync(
      kubeconfig,
      readFileSync(home.kubeconfig, 'utf8').replace(/127\.0\.0\.1:\d+/g, `127.0.0.1:${await freePort()}`),
    );
    const next = spawnDns([
      '--kubeconfig',
      kubeconfig,
      '--cluster-id',
      'east',
      '--listen',
      `127.0.0.1:${port}`,
      '--take-over',
    ]);
    const admin = await next.admin;
    const clients = askAllTheTime(port);
    await pause(500);
    const { asked, answered, wrong } = await clients.stop();
    expect({ lost: asked - answered, wrong }).toEqual({ lost: 0, wrong: 0 });
    const ready = await fetch(`${admin}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining('not read yet')]);
    await next.stop();
    await old.stop();
  });
});
