import { expect, test } from 'vitest';
import { claimedAudiences } from '../objects/admin-ticket.ts';
import { ApiError } from '../objects/api-error.ts';
import type { Lease } from '../objects/lease.ts';
import type { Client } from './client.ts';
import { PartAdmin, partAdminPath } from './part-admin.ts';

function lease(annotations: Record<string, string>): Lease {
  const metadata = { namespace: 'portolan-system', name: 'portolan-dns-west', annotations };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata };
}

const system = '/api/v1/namespaces/portolan-system';
const url = 'http://127.0.0.1:9153';
const inPod = { 'portolan.dev/admin': 'http://127.0.0.1:9465', 'portolan.dev/pod': 'portolan-dns-7f-x' };
const notFound = (message: string) => new ApiError(message, { code: 404, reason: 'NotFound' });

/** Writes down what it is asked. */
function scripted(answers: { token?: unknown; path?: unknown } = {}) {
  const asked: string[] = [];
  const client = {
    createSubresource: async (_type: unknown, ref: { name: string }, body: { spec: { audiences: string[] } }) => {
      asked.push(`token of ${ref.name} for ${body.spec.audiences}`);
      if (answers.token !== undefined) throw answers.token;
      return { status: { token: `ticket-${asked.length}` } };
    },
    getPath: async (path: string, { headers = {} }: { headers?: Record<string, string> }) => {
      asked.push(`GET ${path.replace(system, '')} ${JSON.stringify(headers)}`);
      if (answers.path !== undefined) throw answers.path;
      return 'answer';
    },
  } as unknown as Client;
  return { asked, admin: new PartAdmin(client) };
}

test('part admin: a part beside an embedded home -> services/proxy of its Lease; in a Pod -> pods/proxy with its port', () => {
  expect(partAdminPath(lease({ 'portolan.dev/admin': url }))).toBe(`${system}/services/portolan-dns-west:admin/proxy`);
  expect(partAdminPath(lease({}))).toBe(`${system}/services/portolan-dns-west:admin/proxy`);
  expect(partAdminPath(lease(inPod))).toBe(`${system}/pods/portolan-dns-7f-x:9465/proxy`);
});

test('part admin: a part in a Pod -> one ticket for all questions to it, none for health and metrics', async () => {
  const { asked, admin } = scripted();
  await admin.askText(lease(inPod), '/metrics');
  await Promise.all([admin.ask(lease(inPod), '/status'), admin.ask(lease(inPod), '/explain?name=a')]);
  const pod = '/pods/portolan-dns-7f-x:9465/proxy';
  expect(asked).toEqual([
    `GET ${pod}/metrics {}`,
    'token of portolan-admin-caller for portolan-admin/portolan-dns-7f-x',
    `GET ${pod}/status {"portolan-ticket":"ticket-2"}`,
    `GET ${pod}/explain?name=a {"portolan-ticket":"ticket-2"}`,
  ]);
});

test('part admin: a part of an embedded home on another machine -> a ticket for its address; beside the home -> none', async () => {
  const { asked, admin } = scripted();
  const remote = 'http://10.0.0.5:9465';
  await admin.ask(lease({ 'portolan.dev/admin': remote }), '/status');
  await admin.ask(lease({ 'portolan.dev/admin': url }), '/status');
  const service = '/services/portolan-dns-west:admin/proxy';
  expect(asked).toEqual([
    `token of portolan-admin-caller for portolan-admin/${remote}`,
    `GET ${service}/status {"portolan-ticket":"ticket-1"}`,
    `GET ${service}/status {}`,
  ]);
});

test('part admin: no account of callers, as an older installation -> asked without a ticket; no right to it -> said', async () => {
  const older = scripted({ token: notFound('serviceaccounts "portolan-admin-caller" not found') });
  expect(await older.admin.ask(lease(inPod), '/status')).toBe('answer');
  const refused = scripted({
    token: new ApiError('cannot create serviceaccounts/token', { code: 403, reason: 'Forbidden' }),
  });
  await expect(refused.admin.ask(lease(inPod), '/status')).rejects.toThrow('cannot create serviceaccounts/token');
  expect(refused.asked).toHaveLength(1);
});

test('part admin: connections -> a ticket of their own account, beside the home too; no right to it -> names the role', async () => {
  const { asked, admin } = scripted();
  await admin.ask(lease({ 'portolan.dev/admin': url }), '/flows?after=1');
  await admin.ask(lease(inPod), '/traffic');
  expect(asked.filter((line) => line.startsWith('token'))).toEqual([
    `token of portolan-flow-reader for portolan-admin/${url}`,
    'token of portolan-flow-reader for portolan-admin/portolan-dns-7f-x',
  ]);
  expect(asked[1]).toContain('"portolan-ticket":"ticket-1"');
  const token = new ApiError('cannot create serviceaccounts/token', { code: 403, reason: 'Forbidden' });
  const refused = scripted({ token });
  await expect(refused.admin.ask(lease(inPod), '/flows')).rejects.toThrow(
    /you may not read connections.*portolan:read-flows/,
  );
});

test('part admin: outside the Pods of a Kubernetes -> says where it runs and where to ask it', async () => {
  const { admin } = scripted({ path: notFound('services "portolan-dns-west" not found') });
  const annotations = { 'portolan.dev/admin': url, 'portolan.dev/node': 'vm-3' };
  await expect(admin.ask(lease(annotations), '/status')).rejects.toThrow(
    `part portolan-dns-west runs on vm-3, outside the Pods of this cluster, where this API server does not reach it; ask it on that machine at ${url}, or run it in a Pod`,
  );
  const authority = scripted({ path: notFound('pods "portolan-dns-7f-x" not found') });
  await expect(authority.admin.ask(lease(inPod), '/status')).rejects.toThrow(
    'runs in Pod portolan-dns-7f-x, which is not in this cluster, where this API server does not reach it; ask it through the cluster of that Pod',
  );
});

test('tickets: what a text claims -> audiences, or none', () => {
  const claims = (value: unknown) => `h.${Buffer.from(JSON.stringify(value)).toString('base64url')}.s`;
  expect(claimedAudiences(claims({ aud: 'one' }))).toEqual(['one']);
  expect(claimedAudiences(claims({ aud: ['one', 2, null] }))).toEqual(['one']);
  for (const text of ['', 'x', claims(null), claims({}), claims([])]) expect(claimedAudiences(text)).toEqual([]);
});
