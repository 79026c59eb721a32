// Meshes on the loopback that stop with the test that started them, and what such tests look at again and again.

import { expect, onTestFinished } from 'vitest';
import { type PeerExport, peerExportType } from '../../kinds/peer-export.ts';
import { introduceTo, type NodeOptions, startMesh, type TestMeshNode } from './memory-home.ts';

export async function mesh(name: string, options: NodeOptions = {}): Promise<TestMeshNode> {
  const node = await startMesh(name, options);
  onTestFinished(() => node.stop());
  return node;
}

/** `consumer` takes from `owner`. */
export async function pair(changes: Parameters<typeof introduceTo>[2] = {}) {
  const owner = await mesh('owner');
  const consumer = await mesh('consumer');
  await introduceTo(owner, consumer, changes);
  return { owner, consumer };
}

export const eventually = <T>(read: () => Promise<T> | T) => expect.poll(read, { timeout: 15_000, interval: 20 });

export async function idsAt(node: TestMeshNode): Promise<string[]> {
  return (await node.peerServices()).map(({ spec }) => spec.id).sort();
}

export function exportAt(node: TestMeshNode, name = 'all'): Promise<PeerExport> {
  return node.client.get<PeerExport>(peerExportType, { namespace: 'shop', name });
}
