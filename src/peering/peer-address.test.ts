// The address of a Peer: what the home accepts, and what is dialed.

import { expect, test } from 'vitest';
import { type Peer, peerType } from './kinds/peer.ts';
import { memoryHome, namespace } from './testing/edge/memory-home.ts';
import { meshOf } from './testing/edge/mesh.ts';
import { type KnownPeer, linkConfigOf } from './trust/peer-registry.ts';

const bundle = meshOf('x.example').certificate;
const noneReserved = { zones: [], ranges: [], hosts: [] };

test.each([
  ['https://150.214.141.1:8008', 'https://150.214.141.1:8008'],
  ['https://acme.example.com:8008', 'https://acme.example.com:8008'],
  ['acme.example.com:8008', 'https://acme.example.com:8008'],
  ['[2001:db8::1]:8008', 'https://[2001:db8::1]:8008'],
])('peering: the endpoint %s (seed 000, Accessibility) -> %s', async (address, url) => {
  const home = await memoryHome();
  const spec = { address, trust: { domain: 'acme.example', bundle } };
  const object = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name: 'acme', namespace }, spec };
  const peer = await home.client.create<Peer>(peerType, object);
  expect(linkConfigOf({ spec: peer.spec, rootsPem: [] } as unknown as KnownPeer, noneReserved)?.address).toBe(url);
  await home.stop();
});

test.each(['http://acme.example.com:8008', 'acme.example.com', 'https://acme.example.com', 'https://a b:1'])(
  'peering: the endpoint %s, in the clear, without a port or no address -> refused by the home',
  async (address) => {
    const home = await memoryHome();
    const spec = { address, trust: { domain: 'acme.example', bundle } };
    const object = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name: 'acme', namespace }, spec };
    await expect(home.client.create(peerType, object)).rejects.toThrow('spec.address');
    await home.stop();
  },
);
