// Faults of access: calls of other clusters that are to be limited, and are not; and calls that are refused.

import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { type AccessMode, clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { type AccessReport, accessAnnotation } from '../../src/kube/objects/reports/access-report.ts';
import { setName } from '../clusterset.ts';
import { answeringPart, type MadeFault } from './fault.ts';
import type { Scene } from './scene.ts';

const west = { at: 'broker', type: clusterType, ref: { namespace: setName, name: 'west' } } as const;
const fine: AccessReport = { mode: 'Exported', isEnforced: true, reason: 'Enforced', message: '', refused: [] };
const ranges = { east: ['10.1.0.0/16'], west: ['10.2.0.0/16'] };
const proxyLease = { namespace: systemNamespace, name: 'portolan-proxy-n1' };
const answering = answeringPart('proxy', { problems: [] }, { problems: [] });
const waitMs = 20_000;

interface Limited {
  readonly report?: (nowMs: number) => Partial<AccessReport>;
  readonly sourceRanges?: Partial<Record<'east' | 'west', string[]>>;
}

/** West is asked to limit calls, and a proxy of one node reports how far it does. */
function limited({ report, sourceRanges = ranges }: Limited): Pick<MadeFault, 'make' | 'mend'> {
  return {
    make: async (scene) => {
      const { desk, set } = scene;
      for (const name of ['east', 'west'] as const)
        await set.broker.admin.patch(
          clusterType,
          { namespace: setName, name },
          { kind: 'merge', body: { spec: { sourceRanges: sourceRanges[name] ?? null } } },
        );
      await limit(scene, 'Exported');
      await answering.make(scene);
      const said = JSON.stringify({ ...fine, ...report?.(desk.deps.world.clock.wallMs()) });
      const body = { metadata: { annotations: { [accessAnnotation]: said } } };
      await desk.home.patch(leaseType, proxyLease, { kind: 'merge', body });
      await set.time.advance(waitMs);
    },
    mend: async (scene) => {
      await scene.desk.home.delete(leaseType, proxyLease);
      await limit(scene, 'Open');
    },
  };
}

async function limit({ set }: Scene, access: AccessMode): Promise<void> {
  await set.broker.admin.patch(
    clusterSetType,
    { namespace: setName, name: setName },
    { kind: 'merge', body: { spec: { access } } },
  );
  await set.time.advance(waitMs);
}

const unproved = 'a connection that must be refused was not: the kernel does not apply the rules';
const unknownSource =
  'no source ranges of east: packets from there pass as those of no member; set sourceRanges with portolan broker accept';

export const accessFaults: readonly MadeFault[] = [
  {
    fault: 'calls are limited, and a member has no source ranges',
    code: 'PTL0906',
    says: /source ranges: NoSourceRanges: no source ranges of east/,
    doctorExit: 7,
    conditions: { of: west, are: /AccessEnforced=False NoSourceRanges/ },
    ...limited({
      sourceRanges: { west: ranges.west },
      report: () => ({ isEnforced: false, reason: 'NoSourceRanges', message: unknownSource }),
    }),
  },
  {
    fault: 'calls are limited, and the source ranges of two members overlap',
    code: 'PTL0906',
    says: /source ranges: OverlappingRanges: source range 10\.1\.0\.0-10\.1\.255\.255 belongs to east, west/,
    doctorExit: 0,
    ...limited({ sourceRanges: { east: ranges.east, west: ['10.1.0.0/16', '10.2.0.0/16'] } }),
  },
  {
    fault: 'calls are limited, and the kernel of a node does not apply the rules',
    code: 'PTL0906',
    says: /nodes: NotProved: n1: a connection that must be refused was not/,
    doctorExit: 7,
    conditions: { of: west, are: /AccessEnforced=False NotProved/ },
    ...limited({ report: () => ({ isEnforced: false, reason: 'NotProved', message: unproved }) }),
  },
  {
    fault: 'a cluster calls what is not exported to it',
    code: 'PTL0907',
    says: /Service shop\/db: east is refused at shop\/db, port 5432\/tcp: not exported/,
    doctorExit: 0,
    statusSays: /access: east is refused at shop\/db, port 5432\/tcp: not exported/,
    conditions: { of: west, are: /AccessEnforced=True Enforced/ },
    ...limited({
      report: (nowMs) => {
        const lastAt = new Date(nowMs).toISOString();
        return { refused: [{ from: 'east', service: 'shop/db', port: '5432/tcp', packets: 12, lastAt }] };
      },
    }),
  },
];
