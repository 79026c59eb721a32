// The ingress of a home that is away: it goes on for a while, and then admits nobody new.

import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { peerExportType } from '../../peering/kinds/peer-export.ts';
import { ViewIndex } from '../view/view-index.ts';
import { WithheldList } from '../withheld.ts';
import { IngressSource } from './ingress.ts';
import type { MeshSource } from './mesh.ts';
import { watchOwnSlices } from './own-slices.ts';

const namespace = 'portolan-system';
const sni = 'checkout.shop.owner.example';

test('ingress: cut off from its home -> peers are admitted for ten minutes, then nobody new; the home is back -> they are admitted again', async () => {
  const simulation = new Simulation({ seed: 1 });
  const home = await startHome(simulation, 'owner');
  const { time } = simulation;
  const make = (type: typeof peerType, metadata: object, spec: object) => {
    const apiVersion = type.group === '' ? 'v1' : `${type.group}/${type.version}`;
    return time.settle(home.admin.create(type, { apiVersion, kind: type.kind, metadata, spec } as never));
  };
  await make(namespaceType, { name: 'shop' }, {});
  await make(serviceType, { name: 'checkout', namespace: 'shop' }, { ports: [{ port: 80 }] });
  await make(peerType, { name: 'west', namespace }, { trust: { domain: 'west.example', bundle: 'PEM' } });
  const shared = { services: ['checkout'], peers: ['west'], tls: 'passthrough' };
  await make(peerExportType, { name: 'all', namespace: 'shop' }, shared);
  const world = simulation.world('xds');
  const client = home.clientOf(world);
  const secrets = createInformer<Secret>({ client, world, log: silentLog, namespace, type: secretType });
  secrets.start();
  const mesh = {
    defaults: () => ({ trustDomain: 'owner.example', domain: 'owner.example', ingress: [] }),
    ...{ authority: () => undefined, onChange: () => () => {}, whenSynced: async () => {} },
  } as unknown as MeshSource;
  const views = new ViewIndex();
  const slices = watchOwnSlices({ client, world, log: silentLog, views });
  slices.start();
  const source = new IngressSource({
    ...{ client, world, log: silentLog, views, namespace, secretsNamespace: namespace, secrets, slices, mesh },
    ...{ withheld: new WithheldList(), port: 15_443 },
  });
  await time.settle(source.whenSynced());
  const admits = () => {
    const entry = views.ingress.get('listener', 'ingress');
    return entry !== undefined && admittedIn(Buffer.from(entry.any).toString('latin1'));
  };
  const before = views.ingress.get('listener', 'ingress')?.version;
  expect(admits()).toBe(true);
  home.kill();
  await time.advance(590_000);
  expect([admits(), views.ingress.get('listener', 'ingress')?.version]).toEqual([true, before]);
  await time.advance(60_000);
  expect([admits(), views.ingress.get('listener', 'ingress')?.version === before]).toEqual([false, false]);
  await time.settle(home.start());
  await time.advance(60_000);
  expect([admits(), views.ingress.get('listener', 'ingress')?.version]).toEqual([true, before]);
  source.stop();
});

/** Whether the matcher names the service; closed, it names nobody. */
function admittedIn(text: string): boolean {
  return text.includes(sni) && !text.includes('nobody.invalid');
}
