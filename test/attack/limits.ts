// Homes with little of what an operating system gives: file descriptors, memory, disk for the audit log.

import { connect as connectTcp, type Socket } from 'node:net';
import { type Attack, startVictim } from './attack.ts';

const maps = '/api/v1/namespaces/default/configmaps';

export const limitAttacks: readonly Attack[] = [
  {
    attempt: '500 idle connections to a home with 128 file descriptors',
    run: async (scene) => {
      const under = ['bash', '-c', 'ulimit -n 128; exec "$0" "$@"'];
      const { api, admin } = await startVictim(scene, { under });
      const sockets: Socket[] = [];
      for (let count = 0; count < 500; count++) {
        const socket = connectTcp(api.port, '127.0.0.1');
        socket.on('error', () => {});
        sockets.push(socket);
      }
      scene.onClose(() => sockets.map((socket) => socket.destroy()));
      await new Promise((resolve) => setTimeout(resolve, 1000));
      const during = (await admin.request('POST', maps, { metadata: { name: 'during' } })).status;
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => setTimeout(resolve, 500));
      const after = (await admin.request('POST', maps, { metadata: { name: 'after' } })).status;
      const isAlive = api.child.exitCode === null;
      return {
        isHeld: isAlive && during === 201 && after === 201,
        outcome: `an open connection goes on (write: ${during}), afterwards ${after}; the process lives: ${isAlive}`,
      };
    },
  },
  {
    attempt: 'objects of 0.9 MB without end, in a namespace with a quota of 50, to a home with a heap of 256 MB',
    run: async (scene) => {
      const under = ['env', 'NODE_OPTIONS=--max-old-space-size=256'];
      const { api, admin } = await startVictim(scene, { under });
      const quota = { metadata: { name: 'bounded' }, spec: { hard: { 'count/configmaps': '50' } } };
      await admin.request('POST', '/api/v1/namespaces/default/resourcequotas', quota);
      const statuses = new Map<number, number>();
      const value = 'x'.repeat(900_000);
      for (let round = 0; round < 40; round++)
        for (const { status } of await Promise.all(
          Array.from({ length: 8 }, (_, index) =>
            admin
              .request('POST', maps, { metadata: { name: `m-${round}-${index}` }, data: { value } })
              .catch(() => ({ status: 0 })),
          ),
        ))
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const isAlive = api.child.exitCode === null && api.child.signalCode === null;
      const list = isAlive ? (await admin.request('GET', `${maps}?limit=1`)).status : 0;
      const counts = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
      return { isHeld: isAlive && list === 200, outcome: `${counts}; the process lives: ${isAlive}` };
    },
  },
];
