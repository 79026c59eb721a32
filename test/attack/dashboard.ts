// Load on the dashboard without a login.

import { readFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { runPortolan, startPortolan } from '../support/portolan.ts';
import { type Attack, type Scene, startVictim } from './attack.ts';

async function startDashboard(scene: Scene, kubeconfig: string): Promise<string> {
  const dashboard = startPortolan(['dashboard', '--kubeconfig', kubeconfig, '--listen', '127.0.0.1:0']);
  scene.onClose(() => dashboard.stop());
  for (let round = 0; round < 400; round++) {
    const url = /^ready (\S+)$/m.exec(dashboard.out())?.[1];
    if (url !== undefined) return url;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the dashboard did not start: ${dashboard.out()}`);
}

export const dashboardAttacks: readonly Attack[] = [
  {
    attempt: '600 idle connections to the dashboard',
    run: async (scene) => {
      const { api } = await startVictim(scene);
      const url = await startDashboard(scene, api.kubeconfig);
      const sockets: Socket[] = [];
      for (let count = 0; count < 600; count++) {
        const socket = connectTcp(Number(new URL(url).port), '127.0.0.1');
        socket.on('error', () => {});
        sockets.push(socket);
      }
      scene.onClose(() => sockets.map((socket) => socket.destroy()));
      await new Promise((resolve) => setTimeout(resolve, 500));
      const startMs = performance.now();
      const status = await fetch(url).then(
        (answer) => answer.status,
        () => 0,
      );
      const ms = Math.round(performance.now() - startMs);
      return { isHeld: status === 200 && ms < 2000, outcome: `the page is answered with ${status} after ${ms} ms` };
    },
  },
  {
    attempt: '300 invented tokens at the dashboard',
    run: async (scene) => {
      const audit = `${scene.folder}/audit.log`;
      const { api } = await startVictim(scene, { args: ['--audit', audit] });
      const url = await startDashboard(scene, api.kubeconfig);
      const { out } = await runPortolan(['dashboard', 'token', '--kubeconfig', api.kubeconfig, '--hours', '1']);
      const ask = async (token: string) => {
        const answer = await fetch(`${url}/api/stream`, { headers: { authorization: `Bearer ${token}` } });
        void answer.body?.cancel();
        return answer.status;
      };
      const counts = new Map<number, number>();
      for (let count = 0; count < 300; count++) {
        const status = await ask(`invented-token-of-some-length-${count}`);
        counts.set(status, (counts.get(status) ?? 0) + 1);
      }
      await new Promise((resolve) => setTimeout(resolve, 2500));
      const real = await ask(out.trim());
      const lines = readFileSync(`${audit}.anonymous`, 'utf8')
        .split('\n')
        .filter((line) => line.includes('portolan'));
      const said = [...counts].map(([status, count]) => `${count} × ${status}`).join(', ');
      return {
        isHeld: real === 200 && (counts.get(401) ?? 0) < 60,
        outcome: `${said}; ${lines.length} lines in the audit log; a real token then: ${real}`,
      };
    },
  },
];
