// Faults of sealed exports: keys that nobody has confirmed, and keys that became others.

import { clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { sealingSecretName } from '../../src/clusterset/membership/membership.ts';
import { sealingNamespace } from '../../src/kube/objects/ours.ts';
import { secretType } from '../../src/kube/objects/secret.ts';
import { setName } from '../clusterset.ts';
import { confirmKeys } from '../sealing.ts';
import type { MadeFault } from './fault.ts';
import type { Scene } from './scene.ts';

async function allow({ set }: Scene, exports: 'Allowed' | 'Refused'): Promise<void> {
  const patch = { kind: 'merge', body: { spec: { sealing: { exports } } } } as const;
  await set.broker.admin.patch(clusterSetType, { namespace: setName, name: setName }, patch);
  await set.time.advance(20_000);
}

const mend = (scene: Scene) => allow(scene, 'Refused');

export const sealingFaults: readonly MadeFault[] = [
  {
    fault: 'nobody has confirmed the keys for sealed exports',
    code: 'PTL0209',
    says: /sealed exports of cluster east: its key is SHA256:\S+: compare it there, then portolan broker accept east/,
    doctorExit: 0,
    make: (scene) => allow(scene, 'Allowed'),
    mend,
  },
  {
    fault: 'a member has another key for sealed exports than before',
    code: 'PTL0209',
    says: /sealed exports of cluster west: east: its key is another one than before: compare it there, then here/,
    doctorExit: 7,
    make: async (scene) => {
      const { set } = scene;
      await allow(scene, 'Allowed');
      const ids = ['east', 'west'];
      await confirmKeys(set, ids);
      await set.time.advance(20_000);
      await set.stopAgent('east');
      await set.home('east').admin.delete(secretType, { namespace: sealingNamespace, name: sealingSecretName });
      set.startAgent('east');
      await set.time.advance(60_000);
      await confirmKeys(set, ids);
      await set.time.advance(20_000);
    },
    mend,
  },
];
