// Attacks on the port of peering by strangers.

import http2 from 'node:http2';
import { introductionPath } from '../../src/peering/rules/peer-introduction.ts';
import { startPortolan } from '../support/portolan.ts';
import { type Attack, startVictim } from './attack.ts';

const guesses = 300;

export const peeringAttacks: readonly Attack[] = [
  {
    attempt: `${guesses} guessed introductions at a peering port`,
    run: async (scene) => {
      const { api, admin } = await startVictim(scene);
      const peering = startPortolan([
        ...['peering', '--kubeconfig', api.kubeconfig, '--trust-domain', 'acme.example'],
        ...['--listen', '127.0.0.1:0', '--log-level', 'error'],
      ]);
      scene.onClose(() => peering.stop());
      let target: string | undefined;
      for (let round = 0; round < 400 && target === undefined; round++) {
        target = /^ready (\S+)$/m.exec(peering.out())?.[1];
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      if (target === undefined) throw new Error(`peering did not start: ${peering.out()}`);
      const session = http2.connect(`https://${target}`, { rejectUnauthorized: false });
      session.on('error', () => {});
      scene.onClose(() => session.destroy());
      const counts = new Map<number, number>();
      for (let count = 0; count < guesses; count++) {
        const secret = Buffer.from(`guess-${count}`.padEnd(32, 'x')).toString('base64url');
        const body = { secret, address: '127.0.0.1:1', domain: 'evil.example', bundle: 'none' };
        const status = await post(session, introductionPath, JSON.stringify(body));
        counts.set(status, (counts.get(status) ?? 0) + 1);
      }
      const path = '/apis/portolan.dev/v1alpha1/namespaces/portolan-system/peers';
      const { items } = JSON.parse((await admin.request('GET', path)).body.toString()) as { items: unknown[] };
      const told = [...counts].map(([status, count]) => `${count} × ${status}`).join(', ');
      const checked = guesses - (counts.get(429) ?? 0);
      return { isHeld: items.length === 0 && checked <= 10, outcome: `${told}; ${items.length} Peers made` };
    },
  },
];

function post(session: http2.ClientHttp2Session, path: string, body: string): Promise<number> {
  return new Promise((resolve) => {
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/json' };
    const stream = session.request(headers);
    let status = 0;
    stream.on('response', (response) => (status = Number(response[':status'])));
    stream.on('error', () => {});
    stream.on('close', () => resolve(status));
    stream.resume();
    stream.end(body);
  });
}
