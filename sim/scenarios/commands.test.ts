// Commands of the CLI in a simulated clusterset: what they do when something is away.

import { describe, expect, test } from 'vitest';
import { leave } from '../../src/cli/leave.ts';
import { membershipRef } from '../../src/cli/membership.ts';
import { leavingAnnotation } from '../../src/model/membership.ts';
import { secretType } from '../../src/model/secret.ts';
import { SimClusterSet } from '../clusterset.ts';
import { openDesk } from '../command.ts';
import { type Fault, withFaults } from '../faults.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';

async function twoClusters(faults: Fault[] = []) {
  const wrap = withFaults(faults);
  const set = await new SimClusterSet({ clusters: ['east', 'west'], wrap }).start({ namespaces: ['shop'] });
  await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
  await exportService(set.home('west').admin, key, { endpoints: ['10.2.0.1'] });
  await set.time.advance(20_000);
  const desk = await openDesk(set, 'west');
  const isLeaving = async () => {
    const { metadata } = await desk.home.get(secretType, membershipRef);
    return metadata.annotations?.[leavingAnnotation] !== undefined;
  };
  return { set, desk, isLeaving };
}

describe('leave', () => {
  test('leave: the broker is down -> an error, and the cluster is a member as before', async () => {
    const { set, desk, isLeaving } = await twoClusters();
    set.broker.kill();
    const left = leave(desk.deps, { home: desk.home, isOffline: false });
    await expect(set.time.settle(left)).rejects.toThrow('this cluster is still a member; try again, or give --offline');
    expect(await isLeaving()).toBe(false);
  });

  test('leave: the broker goes away while agents come to rest -> the mark is taken back', async () => {
    const faults: Fault[] = [];
    const { set, desk, isLeaving } = await twoClusters(faults);
    faults.push({ home: 'broker', method: 'GET', path: '/leases/', times: Number.POSITIVE_INFINITY });
    const left = leave(desk.deps, { home: desk.home, isOffline: false });
    await expect(set.time.settle(left)).rejects.toThrow('made to fail');
    expect(await isLeaving()).toBe(false);
  });
});
