// Refusals by RBAC as a client remembers them, and as the Lease of its part and doctor show them.

import { expect, test } from 'vitest';
import { SimHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { createInformer } from '../controller/informer.ts';
import { keepPartLease } from '../controller/part-lease.ts';
import { ApiError } from '../objects/api-error.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { partStatuses } from '../objects/part-status.ts';
import { serviceType } from '../objects/service.ts';
import { createClient } from './client.ts';
import { MissingRights } from './missing-rights.ts';

const forbidden = (message: string) => new ApiError(message, { code: 403, reason: 'Forbidden' });
const denied = (verb: string, resource: string, scope = 'at the cluster scope') =>
  forbidden(`${resource} is forbidden: User "u" cannot ${verb} resource "${resource}" in API group "a.b" ${scope}`);

test('missing rights: refused by RBAC -> named; by a quota or an admission -> not; used with success -> gone', () => {
  const rights = new MissingRights();
  rights.refused('GET', '/apis/a.b/v1/peers?limit=1', denied('list', 'peers'));
  rights.refused('GET', '/apis/a.b/v1/peers?watch=1', denied('watch', 'peers'));
  rights.refused('PUT', '/apis/a.b/v1/namespaces/n/peers/x', denied('update', 'peers', 'in the namespace "n"'));
  rights.refused('POST', '/x', forbidden('exceeded quota: q, requested: count/leases=1'));
  rights.refused('POST', '/y', forbidden('admission webhook "w" denied the request'));
  rights.refused('GET', '/z', new ApiError('cannot list resource "x"', { code: 500, reason: '' }));
  expect(rights.list()).toEqual(['list peers.a.b', 'update peers.a.b in n', 'watch peers.a.b']);
  rights.allowed('GET', '/apis/a.b/v1/peers?limit=500');
  expect(rights.list()).toEqual(['update peers.a.b in n', 'watch peers.a.b']);
});

test('missing rights: a thousand objects -> bounded; not tried again for an hour of Leases -> forgotten', () => {
  const rights = new MissingRights();
  for (let i = 0; i < 1000; i += 1) rights.refused('GET', `/x/${i}`, denied('get', `kind${i}`));
  expect(rights.list()).toHaveLength(20);
  for (let i = 0; i < 360; i += 1) rights.list();
  expect(rights.list()).toEqual([]);
});

test('missing rights: a part may not list what it follows -> its Lease and the status of parts name the right; granted -> gone', async () => {
  const simulation = new Simulation({ seed: 1 });
  let isGranted = false;
  const home = new SimHome({
    ...{ simulation, name: 'east', serviceRanges: ['10.96.0.0/16'] },
    mayDo: (user, { resource }) => user !== 'dns' || isGranted || resource !== 'services',
  });
  const { time } = simulation;
  await time.settle(home.start());
  const world = simulation.world('dns');
  const access = { server: home.url, bearerToken: async () => 'dns' };
  const client = createClient(world.network.http(access), { world, userAgent: 'dns' });
  createInformer({ client, world, log: silentLog, type: serviceType }).start();
  keepPartLease({ client, world, log: silentLog, part: 'dns', id: 'n1', node: 'n1' });
  const missing = async () => {
    const { items } = await time.settle(home.admin.list<Lease>(leaseType, { namespace: 'portolan-system' }));
    return partStatuses(items, world.clock.wallMs()).map(({ part, missingRights }) => ({ part, missingRights }));
  };
  await time.advance(25_000);
  expect(await missing()).toEqual([{ part: 'dns', missingRights: ['list services'] }]);
  isGranted = true;
  await time.advance(120_000);
  expect(await missing()).toEqual([{ part: 'dns', missingRights: [] }]);
});
