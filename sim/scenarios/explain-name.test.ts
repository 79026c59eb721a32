// `portolan explain` on a service whose name leads to endpoints: what a bare A or AAAA answer cannot tell.

import { expect, test } from 'vitest';
import type { ClusterSetSpec } from '../../src/clusterset/kinds/cluster-set.ts';
import { SimClusterSet } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';
const http = { name: 'http', port: 80 };
const admin = { name: 'admin', port: 81 };
const note = 'A and AAAA of this name are endpoints and do not say their ports: ask for SRV of the port you want.';
const uneven = 'Clusters serve different ports: an address may be of one that lacks the port you want.';

async function explained(spec: ClusterSetSpec, portsOfWest: readonly (typeof http)[]): Promise<string> {
  const set = await new SimClusterSet({ clusters: ['east', 'west'], set: spec }).start({ namespaces: ['shop'] });
  await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'], spec: { ports: [http] } });
  await exportService(set.home('west').admin, key, { endpoints: ['10.2.0.1'], spec: { ports: [...portsOfWest] } });
  await set.time.advance(4_000);
  return (await set.time.settle(typeAt(await openDesk(set, 'east'), `explain ${key}`))).join('\n');
}

test('explain: no clusterset IPs, ports differ by cluster -> a bare A may lead to a cluster without the port', async () => {
  expect(await explained({ clusterSetIP: 'none' }, [http, admin])).toContain(`${note} ${uneven}`);
});

test('explain: no clusterset IPs, the same ports -> a bare A does not say the ports', async () => {
  const text = await explained({ clusterSetIP: 'none' }, [http]);
  expect(text).toContain(note);
  expect(text).not.toContain(uneven);
});

test('explain: with a clusterset IP -> nothing of the kind, for the proxy knows the ports', async () => {
  expect(await explained({}, [http, admin])).not.toContain('do not say their ports');
});
