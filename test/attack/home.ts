// Attacks on a home by clients without rights, and on its files.

import { once } from 'node:events';
import { chmodSync, readFileSync, statSync } from 'node:fs';
import http2 from 'node:http2';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { type connect, startApi } from '../support/api-process.ts';
import { type Attack, startVictim, watchLatency } from './attack.ts';
import type { FloodOptions } from './header-flood.ts';

const maps = '/api/v1/namespaces/default/configmaps';

export const homeAttacks: readonly Attack[] = [
  {
    attempt: '12,000 anonymous requests with long paths, to erase the audit log',
    run: async (scene) => {
      const audit = `${scene.folder}/audit.log`;
      const { api, admin } = await startVictim(scene, { args: ['--audit', audit] });
      await admin.request('POST', maps, { metadata: { name: 'evidence' } });
      const session = http2.connect(`https://127.0.0.1:${api.port}`, { rejectUnauthorized: false });
      scene.onClose(() => session.destroy());
      const statuses = new Map<number, number>();
      for (let round = 0; round < 120; round++)
        await Promise.all(
          Array.from({ length: 100 }, async (_, index) => {
            const status = await statusOf(session, `/api/v1/namespaces/n${round}-${index}/secrets?${'x'.repeat(4000)}`);
            statuses.set(status, (statuses.get(status) ?? 0) + 1);
          }),
        );
      await new Promise((resolve) => setTimeout(resolve, 500));
      const kept = readFileSync(audit, 'utf8').includes('"create"');
      const bytes = statSync(audit).size + statSync(`${audit}.anonymous`).size;
      const counts = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
      return {
        isHeld: kept && bytes < 1_000_000,
        outcome: `${counts}; ${bytes} bytes of log, the evidence is there: ${kept}`,
      };
    },
  },
  {
    attempt: '60 connections that send headers of 50 KB without end, for 5 s',
    run: async (scene) => {
      const { api, admin } = await startVictim(scene);
      const cpuBefore = cpuSeconds(api.pid);
      const longest = watchLatency(() => admin.request('GET', '/livez'));
      const workerData: FloodOptions = { port: api.port, forMs: 5000 };
      const worker = new Worker(new URL('./header-flood.ts', import.meta.url), { workerData });
      const [{ sent, ended }] = (await once(worker, 'message')) as [{ sent: number; ended: number }];
      const ms = await longest();
      const cpu = (cpuSeconds(api.pid) - cpuBefore).toFixed(1);
      return {
        isHeld: ms < 2000,
        outcome: `${sent} headers sent, ${ended} connections ended; the slowest /livez took ${ms} ms, ${cpu} s of CPU`,
      };
    },
  },
  {
    attempt: 'a key of mode 0644 and a data folder of 0755',
    run: async (scene) => {
      const { api } = await startVictim(scene);
      await api.stop();
      const data = `${scene.folder}/home`;
      const paths = [data, `${data}/pki`, `${data}/admin.kubeconfig`];
      for (const path of paths) chmodSync(path, 0o755);
      const again = await startApi({ data });
      scene.onClose(() => again.stop('SIGKILL'));
      const modes = paths.map((path) => (statSync(path).mode & 0o077).toString(8));
      const isSaid = again.errors().includes('closed to them now');
      return { isHeld: isSaid && modes.every((mode) => mode === '0'), outcome: `closed to others, warned: ${isSaid}` };
    },
  },
  {
    attempt: 'a DELETE and a GET of the same object, pipelined over HTTP/1.1 behind each other',
    run: async (scene) => {
      const { api, admin } = await startVictim(scene);
      const token = await tokenOf(admin);
      let stale = 0;
      for (let round = 0; round < 20; round++) {
        await admin.request('POST', maps, { metadata: { name: 'a' } });
        const socket = await dial(api.port);
        let answers = '';
        socket.on('data', (chunk) => (answers += chunk));
        const head = `HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n`;
        socket.write(`DELETE ${maps}/a ${head}\r\nGET ${maps}/a ${head}connection: close\r\n\r\n`);
        await new Promise((resolve) => socket.once('close', resolve));
        if (!answers.includes('HTTP/1.1 404')) stale += 1;
      }
      return { isHeld: stale === 0, outcome: `20 pairs, ${stale} times the GET found what the DELETE had removed` };
    },
  },
];

async function tokenOf(admin: Awaited<ReturnType<typeof connect>>): Promise<string> {
  const accounts = '/api/v1/namespaces/default/serviceaccounts';
  await admin.request('POST', accounts, { metadata: { name: 'attacker' } });
  const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
  const subjects = [{ kind: 'ServiceAccount', name: 'attacker', namespace: 'default' }];
  const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
  await admin.request('POST', bindings, { metadata: { name: 'attacker' }, roleRef: role, subjects });
  const { body } = await admin.request('POST', `${accounts}/attacker/token`, { spec: { expirationSeconds: 3600 } });
  return JSON.parse(body.toString()).status.token;
}

function statusOf(session: http2.ClientHttp2Session, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path });
    let status = 0;
    stream.on('response', (headers) => (status = Number(headers[':status'])));
    stream.on('close', () => resolve(status));
    stream.on('error', reject);
    stream.resume();
  });
}

function dial(port: number): Promise<TLSSocket> {
  return new Promise((resolve) => {
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
    socket.on('error', () => resolve(socket));
    socket.once('secureConnect', () => resolve(socket));
  });
}

/** User and system time of a process so far. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
