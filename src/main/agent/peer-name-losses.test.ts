// A name that a peer's service and an external service both claim: the loser has a condition that names the winner.

import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { externalService } from '../../external/testing/services.ts';
import { firstSeenAnnotation, type PeerService, peerServiceType } from '../../peering/kinds/peer-service.ts';
import { startExternal } from './external.ts';

const namespace = 'portolan-system';

async function start() {
  const simulation = new Simulation({ seed: 1 });
  const { admin } = await startHome(simulation);
  const settle = <T>(work: Promise<T>) => simulation.time.settle(work);
  const pass = () => simulation.time.advance(3000);
  const run = () =>
    startExternal({
      ...{ world: simulation.world(`agent${Math.floor(simulation.time.nowMs)}`), log: silentLog, home: admin },
      ...{ membership: () => undefined, whenMembershipKnown: async () => {} },
    });
  let part = run();
  const restart = async (meanwhile: () => Promise<unknown>) => {
    await settle(part.stop());
    await settle(meanwhile());
    part = run();
    await pass();
  };
  const share = async (name: string, fqdn: string, firstSeenMs: number) => {
    const metadata = { name, namespace, annotations: { [firstSeenAnnotation]: String(firstSeenMs) } };
    const spec = { peer: 'acme', id: fqdn, fqdn, sans: ['spiffe://acme.example/x'] };
    await settle(
      admin.create<PeerService>(peerServiceType, {
        ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'PeerService', metadata, spec },
      }),
    );
    await pass();
  };
  const vip = (hostname: string) =>
    externalService(
      `{ match: [{ type: InternalVIP, value: ${hostname}, port: 80 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }] } }`,
      { name: 'mongo' },
    );
  const create = async (hostname: string) => {
    await settle(admin.create(meshExternalServiceType, vip(hostname)));
    await pass();
  };
  const remove = () => admin.delete(meshExternalServiceType, { namespace, name: 'mongo' });
  const conditions = async (name: string) => {
    const { status } = await settle(admin.get<PeerService>(peerServiceType, { namespace, name }));
    return (status?.conditions ?? []).map(({ type, status: is, message }) => `${type} ${is} ${message}`);
  };
  const external = () => settle(admin.get<MeshExternalService>(meshExternalServiceType, { namespace, name: 'mongo' }));
  return { admin, settle, pass, restart, share, create, remove, conditions, external };
}

const future = Date.UTC(2200, 0, 1);
const lost = 'HostnamesAvailable False db.acme.example is held by MeshExternalService mongo, which is older';

test('peer names: an older external service has the name -> the condition says who; it goes -> the condition too', async () => {
  const { settle, pass, share, create, remove, conditions, external } = await start();
  await create('DB.acme.example');
  await share('acme.db', 'db.acme.example', future);
  await share('acme.web', 'web.acme.example', future);
  expect(await conditions('acme.db')).toEqual([lost]);
  expect(await conditions('acme.web')).toEqual([]);
  expect((await external()).status?.vips?.[0]).toMatchObject({ hostname: 'db.acme.example' });
  await settle(remove());
  await pass();
  expect(await conditions('acme.db')).toEqual([]);
});

test('peer names: the external service comes later but is older, and other conditions are there -> only ours changes', async () => {
  const { admin, settle, pass, share, create, remove, conditions } = await start();
  await share('acme.db', 'db.acme.example', future);
  const other = { type: 'AddressHeld', status: 'False', reason: 'RangeExhausted', message: 'none left' } as const;
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const body = { status: { conditions: [{ ...other, lastTransitionTime }] } };
  const ref = { namespace, name: 'acme.db' };
  await settle(admin.patch(peerServiceType, ref, { kind: 'merge', body }, { subresource: 'status' }));
  await create('db.acme.example');
  expect(await conditions('acme.db')).toEqual(['AddressHeld False none left', lost]);
  await settle(remove());
  await pass();
  expect(await conditions('acme.db')).toEqual(['AddressHeld False none left']);
});

test('peer names: the service of the peer is older -> it keeps the name, the external service says who has it', async () => {
  const { share, create, conditions, external } = await start();
  await share('acme.db', 'db.acme.example', 1);
  await create('db.acme.example');
  expect(await conditions('acme.db')).toEqual([]);
  expect((await external()).status).toMatchObject({
    vips: [],
    addresses: [
      { status: 'NotAvailable', reason: expect.stringContaining('clash with PeerService portolan-system/acme.db') },
    ],
  });
});

test('peer names: the conflict ends while nobody looks -> the condition goes at the next start', async () => {
  const { restart, share, create, remove, conditions } = await start();
  await create('db.acme.example');
  await share('acme.db', 'db.acme.example', future);
  expect(await conditions('acme.db')).toEqual([lost]);
  await restart(remove);
  expect(await conditions('acme.db')).toEqual([]);
});
