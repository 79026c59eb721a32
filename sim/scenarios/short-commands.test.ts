// `portolan federation create` and verbs of `portolan peer` at a simulated home.

import { Command } from 'commander';
import { expect, test } from 'vitest';
import { addFederationCommand } from '../../src/cli/federation.ts';
import { exportToPeers } from '../../src/cli/peer/export.ts';
import { addPeerCommands } from '../../src/cli/peer/index.ts';
import { type Federation, federationType } from '../../src/federation/kinds/federation.ts';
import { configMapType } from '../../src/kube/objects/config-map.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { peerType } from '../../src/peering/kinds/peer.ts';
import { type PeerExport, peerExportType } from '../../src/peering/kinds/peer-export.ts';
import { meshCardName } from '../../src/peering/rules/peer-introduction.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { openDesk } from '../command.ts';
import { service } from '../manifests.ts';

test('federation create: at the broker, again with another nameserver, for no clusterset -> created, updated, refused', async () => {
  const set = await new SimClusterSet({ clusters: ['west'] }).start();
  const desk = await openDesk(set, 'west');
  const kubeconfig = desk.files.get('home.kubeconfig')!.replaceAll('https://west', 'https://broker');
  desk.files.set('home.kubeconfig', kubeconfig);
  const type = async (words: string) => {
    desk.printed = [];
    const program = new Command().exitOverride();
    addFederationCommand(program, desk.deps);
    await set.time.settle(program.parseAsync(words.split(' '), { from: 'user' }));
    return desk.printed.join('\n');
  };
  const create = `federation create world --clusterset ${setName}`;
  expect(await type(`${create} --nameserver 10.0.0.53`)).toBe('federation prod/world created');
  expect(await type(`${create} --nameserver 10.0.0.54 --cluster west`)).toBe('federation prod/world updated');
  const { spec } = await set.broker.admin.get<Federation>(federationType, { namespace: setName, name: 'world' });
  expect(spec).toMatchObject({ nameservers: ['10.0.0.54'], clusters: ['west'], suffix: 'federation' });
  await expect(type('federation create world --nameserver 10.0.0.53 --clusterset none')).rejects.toThrow(
    'clusterset none: this broker has prod',
  );
});

test('peer export: a Service and a peer, an unknown peer, no Service -> a PeerExport, or an error that names it', async () => {
  const set = await new SimClusterSet({ clusters: ['west'] }).start({ namespaces: ['shop'] });
  const { home: client } = await openDesk(set, 'west');
  const home = { client, namespace: systemNamespace };
  const metadata = { name: 'acme', namespace: systemNamespace };
  const spec = { trust: { domain: 'acme.example', bundle: 'PEM' } };
  await client.create(peerType, { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata, spec } as never);
  const ref = { namespace: 'shop', name: 'checkout' };
  await expect(exportToPeers(home, { service: ref, peers: ['nobody'] })).rejects.toThrow('there is no Peer nobody');
  await expect(exportToPeers(home, { service: ref, peers: ['acme'] })).rejects.toThrow('there is no Service');
  await client.create(serviceType, service('shop/checkout'));
  expect(await exportToPeers(home, { service: ref, peers: ['acme'] })).toEqual([
    expect.stringContaining('shop/checkout is shared with acme'),
  ]);
  const made = await client.get<PeerExport>(peerExportType, ref);
  expect(made.spec).toMatchObject({ services: ['checkout'], peers: ['acme'] });
});

test('peer bundle, peer diff with --cert and --key -> our roots as they are; these files are read, one alone is refused', async () => {
  const set = await new SimClusterSet({ clusters: ['west'] }).start();
  const desk = await openDesk(set, 'west');
  const named = (name: string) => ({ name, namespace: systemNamespace });
  const data = { address: 'west.example:8008', domain: 'west.example', bundle: 'ROOTS\n' };
  await desk.home.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata: named(meshCardName), data });
  const spec = { address: '127.0.0.1:1', trust: { domain: 'east.example', bundle: 'PEM' } };
  await desk.home.create(peerType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Peer',
    metadata: named('east'),
    spec,
  });
  const type = async (words: string) => {
    desk.printed = [];
    const program = new Command().exitOverride();
    addPeerCommands(program, desk.deps);
    await set.time.settle(program.parseAsync(words.split(' '), { from: 'user' }));
    return desk.printed;
  };
  expect(await type('peer bundle')).toEqual(['ROOTS']);
  await expect(type('peer diff east')).rejects.toThrow('give the --cert and --key');
  await expect(type('peer diff east --cert /none/own.crt')).rejects.toThrow('--cert and --key go together');
  await expect(type('peer diff east --cert /none/own.crt --key /none/own.key')).rejects.toThrow('/none/own.crt');
});
