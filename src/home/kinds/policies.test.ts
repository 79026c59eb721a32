import { expect, test } from 'vitest';
import { createTestApi } from '../testing/test-api.ts';

const labels = { app: 'x' };
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };

test('kinds that charts bring and nothing runs here -> stored with their defaults, refused where Kubernetes refuses them', async () => {
  const { ok, send } = await createTestApi();
  const sets = '/apis/apps/v1/namespaces/default/daemonsets';
  const warned = async (line: string, body: object) => (await send(`${line}?dryRun=All`, body)).headers['warning'];
  const made = await ok(`POST ${sets}`, {
    metadata: { name: 'd' },
    spec: { selector: { matchLabels: labels }, template },
  });
  expect(made.spec.updateStrategy).toEqual({
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
  });
  expect(made.spec.replicas).toBeUndefined();
  expect(await warned(`PUT ${sets}/d`, made)).toContain('this home stores the DaemonSet; nothing here runs it');
  const other = { ...made, spec: { ...made.spec, selector: { matchLabels: { app: 'y' } } } };
  expect((await send(`PUT ${sets}/d`, other)).status).toBe(422);

  const policies = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies';
  const policy = await ok(`POST ${policies}`, { metadata: { name: 'n' }, spec: { podSelector: {}, egress: [] } });
  expect(policy.spec.policyTypes).toEqual(['Ingress', 'Egress']);
  expect(await warned(`PUT ${policies}/n`, policy)).toContain('stores the NetworkPolicy; nothing here enforces it');
  const wrong = { metadata: { name: 'm' }, spec: { podSelector: {}, policyTypes: ['Sideways'] } };
  expect((await send(`POST ${policies}`, wrong)).status).toBe(422);

  const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
  const budget = await ok(`POST ${budgets}`, {
    metadata: { name: 'b' },
    spec: { minAvailable: '50%', selector: { matchLabels: labels } },
  });
  expect(await warned(`PUT ${budgets}/b`, budget)).toContain(
    'stores the PodDisruptionBudget; nothing here enforces it',
  );
  const both = { metadata: { name: 'c' }, spec: { minAvailable: 1, maxUnavailable: 1 } };
  expect((await send(`POST ${budgets}`, both)).status).toBe(422);
});
