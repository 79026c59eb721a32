import { expect, test } from 'vitest';
import type { Lease } from '../objects/lease.ts';
import { partAdminPath } from './part-admin.ts';

function lease(annotations: Record<string, string>): Lease {
  const metadata = { namespace: 'portolan-system', name: 'portolan-dns-west', annotations };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata };
}

test('part admin: a part beside an embedded home -> services/proxy of its Lease; in a Pod -> pods/proxy with its port', () => {
  const system = '/api/v1/namespaces/portolan-system';
  const url = 'http://127.0.0.1:9153';
  expect(partAdminPath(lease({ 'portolan.dev/admin': url }))).toBe(`${system}/services/portolan-dns-west:admin/proxy`);
  expect(partAdminPath(lease({}))).toBe(`${system}/services/portolan-dns-west:admin/proxy`);
  const inPod = { 'portolan.dev/admin': 'http://127.0.0.1:9465', 'portolan.dev/pod': 'portolan-dns-7f-x' };
  expect(partAdminPath(lease(inPod))).toBe(`${system}/pods/portolan-dns-7f-x:9465/proxy`);
});
