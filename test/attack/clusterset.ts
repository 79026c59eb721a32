// Attacks by members of a clusterset and by who finds their tokens.

import { runPortolan } from '../support/portolan.ts';
import { type Attack, startVictim } from './attack.ts';

const ranges = ['--pod-cidr', '10.1.0.0/16', '--service-cidr', '10.97.0.0/16'];

export const clustersetAttacks: readonly Attack[] = [
  {
    attempt: 'a join token that was used, tried again by another cluster',
    run: async (scene) => {
      const broker = await startVictim(scene, { name: 'broker', args: ['--clusterset', 'prod'] });
      const east = await startVictim(scene, { name: 'east' });
      const thief = await startVictim(scene, { name: 'thief' });
      const { out } = await runPortolan([
        ...['broker', 'token', 'east', '--clusterset', 'prod', '--kubeconfig', broker.api.kubeconfig],
      ]);
      const token = out.trim().split('\n').at(-1)!;
      const join = (kubeconfig: string) => runPortolan(['join', token, ...ranges, '--kubeconfig', kubeconfig]);
      const first = await join(east.api.kubeconfig);
      const second = await join(thief.api.kubeconfig);
      const said = second.err.trim().split('\n').at(-1)?.slice(0, 120) ?? '';
      return {
        isHeld: first.code === 0 && second.code !== 0,
        outcome: `first: ${first.code}, again: ${second.code} (${said})`,
      };
    },
  },
];
