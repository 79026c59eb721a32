import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { version } from '../../base/version.ts';
import { objectsOf } from '../../install/objects.ts';
import { defaultValues } from '../../install/values.ts';
import { deploymentType } from '../../install/workload.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { leaseType } from '../../kube/objects/lease.ts';
import { partAnnotations, partLabel } from '../../kube/objects/part-lease.ts';
import { runningLines } from './running.ts';

const image = 'registry.example/portolan:0.0.9';

async function endOfUpgrade(given: string) {
  const simulation = new Simulation({ seed: 1 });
  const home = await startHome(simulation);
  const world = simulation.world('cli');
  const client = home.clientOf(world);
  const settle = <T>(promise: Promise<T>) => simulation.time.settle(promise);
  const nowMs = world.clock.wallMs();
  const objects = objectsOf({ ...defaultValues, image: given }).filter(
    ({ type, object }) => type === deploymentType && object.metadata.name === 'portolan-agent',
  );
  for (const { type, object } of objects) await settle(client.create(type, object));
  const lease = {
    ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
    metadata: {
      ...{ name: 'portolan-agent-a', namespace: 'portolan-system', labels: { [partLabel]: 'agent' } },
      annotations: { [partAnnotations.version]: '0.0.9' },
    },
    spec: { renewTime: formatTime(nowMs), leaseDurationSeconds: 30 },
  };
  await settle(client.create(leaseType, lease));
  return settle(runningLines(client, { objects, image: given, nowMs }));
}

test('the end of an upgrade: the image follows the version, the old process still runs -> both are said', async () => {
  expect(await endOfUpgrade('registry.example/portolan')).toEqual([
    'PART   REPORTS  IMAGE                            PODS',
    `agent  0.0.9    registry.example/portolan:${version}  its controller has not seen the change yet`,
  ]);
});

test('the end of an upgrade: an image pinned to another version -> said, with how to follow the version', async () => {
  expect((await endOfUpgrade(image)).at(-1)).toBe(
    `note: the value image pins ${image}, and this is portolan ${version}; --set image=registry.example/portolan follows the version`,
  );
});

test('the end of an upgrade: an image pinned to this version -> nothing to note', async () => {
  expect((await endOfUpgrade(`registry.example/portolan:${version}`)).join()).not.toContain('note:');
});
