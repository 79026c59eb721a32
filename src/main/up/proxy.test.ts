import { expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { createRealHost } from '../../base/real/host.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { dnsOptionsManifest, dnsOptionsOf } from '../../clusterset/rules/clusterset-dns.ts';
import { install } from '../../kube/client/apply.ts';
import { memoryHome } from '../../peering/testing/edge/memory-home.ts';
import { startUpProxy } from './proxy.ts';

test("portolan up: the set's addresses cannot be routed in userspace, and it is stopped -> the proxy does not hold up the end", async () => {
  const home = await memoryHome();
  const ranges = { clusterSet: ['243.0.0.0/12'], peers: [], external: [] };
  const addressPlan = { federationZones: [], authorities: {}, ranges };
  await install(home.client, dnsOptionsManifest(dnsOptionsOf(undefined), { addressPlan }));
  const ending = new AbortController();
  const warned = Promise.withResolvers<void>();
  const log = {
    ...silentLog,
    with: () => log,
    warn: (text: string) => text.includes('cannot be served') && warned.resolve(),
  };
  const starting = startUpProxy({
    ...{ world: createRealWorld(), log, host: createRealHost(), home: home.client, say: () => {} },
    ...{
      id: 'east',
      region: '',
      zone: '',
      mode: 'userspace',
      isMember: true,
      hasEnvoy: false,
      carriesServices: false,
      signal: ending.signal,
    },
  });
  const ended = expect(starting).rejects.toThrow('stopping');
  await warned.promise;
  ending.abort(new Error('stopping'));
  await ended;
  await home.stop();
});
